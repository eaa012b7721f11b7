"""This machine's C++ compiler, for what links with libHalide: generators and autoscheduler plug-ins."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

from halide_autotune.targets.errors import GeneratorError, ToolchainError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.process.compiler_run import compiler_facts, find_compiler, first_errors
from halide_autotune.targets.process.content_cache import ContentCache, file_sha256
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.cpp_build import LINKED_SUFFIXES, CppBuild, is_library_path, library_files
from halide_autotune.targets.toolchain.generator_stubs import stub_folder, stubs_root
from halide_autotune.targets.toolchain.generator_text import OLD_STYLE_STEP, is_old_style, renamed_step
from halide_autotune.targets.toolchain.precompiled_header import precompiled_header

_COMPILE_LIMITS = ProcessLimits(time_s=300.0, memory_bytes=8 * 2**30)
CPP_COMPILERS = ("g++", "c++", "clang++")
_COMPILE_STEP = (
    "\nFix the source, or name what it needs: --include for folders of headers, --define for macros. Halide's headers"
    " and libraries need no options."
)
_PKG_CONFIG_STEP = "On Debian: apt-get install pkg-config. Or give --include and --library."
_PACKAGE_STEP = "\nSee: pkg-config --list-all"
# The compiler and the C++ library belong to the machine; Halide's headers are told by its version.
_SYSTEM_FOLDERS = (Path("/usr/include"), Path("/usr/lib"), Path("/usr/local/lib/gcc"))
_CPP_FLAGS = ("-std=c++", "-std=gnu++", "-frtti", "-fno-rtti")
_INCLUDED = re.compile(r'(?:#[ \t]*include|__has_include)[ \t]*\(?[ \t]*["<]([^">]+)[">]')
# Of headers with schedules.
_SCHEDULE_SUFFIX = ".schedule.h"
# What GCC says of a header that it parsed before and cannot use any more.
_UNREADABLE = re.compile(r"\bPCH\b|precompiled header")
_ERROR = re.compile(r"\berror\b|undefined reference|cannot find -l|multiple definition")


class HostCppCompiler:
    """Compiles C++ against the Halide wheel, cached by the content of the sources and of every header they read.

    Another compiler, another C library or another kind of machine finds nothing of this one's in the cache.

    Args:
        stop: kills the compiler when it is set, which is an error like any other.
    """

    def __init__(
        self,
        halide: HalideInstall,
        cache: ContentCache,
        environment: Mapping[str, str],
        stop: StopSignal | None = None,
    ) -> None:
        self._halide = halide
        self._cache = cache
        self._environment = dict(environment)
        self._stop = stop

    def build_generator(self, source: Path, build: CppBuild | None = None) -> Path:
        """Build a generator executable from a C++ source and what belongs to it.

        Raises:
            ToolchainError: no C++ compiler is installed.
            GeneratorError: a source does not compile or link; the message has the compiler's first errors.
        """
        build = build or CppBuild()
        link = [str(self._halide.gengen_library), "-rdynamic"]
        return self._build(source, build, link, ".generator")

    def build_plugin(self, source: Path) -> Path:
        """Build an autoscheduler plug-in from one C++ source.

        Raises:
            ToolchainError, GeneratorError: as for `build_generator`.
        """
        return self._build(source, CppBuild(), ["-shared"], ".so")

    def sources_sha256(self, source: Path, build: CppBuild) -> str:
        """The hash of everything that a generator's algorithm is made from; of the source alone if that is all.

        Headers with schedules are no part of it: else a generator that includes what `sdk ship` writes for it would
        count as changed. Libraries of packages are, where pkg-config tells their folder.

        Raises:
            ToolchainError, GeneratorError: as for `build_generator`.
        """
        libraries = _libraries(build, self._package_flags(build.packages, "--libs"))
        every = dict.fromkeys([*self.files_of(source, build), *libraries])
        files = [file for file in every if not file.name.endswith(_SCHEDULE_SUFFIX)]
        if files == [source]:
            return file_sha256(source)
        lines = [f"{os.path.relpath(file, source.parent)} {file_sha256(file)}" for file in files]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def files_of(self, source: Path, build: CppBuild) -> list[Path]:
        """Every file of the user's that a generator is made from: sources, headers, libraries, data.

        Of the libraries those that are given by a path, or whose folder is; of packages none, as they are installed.

        Raises:
            ToolchainError, GeneratorError: as for `build_generator`.
        """
        flags = self._compile_flags(source, build)
        found = [
            source,
            *build.sources,
            *build.kernel_sources,
            *library_files(build.libraries),
            *build.data_files,
        ]
        for one in (source, *build.sources):
            if one.suffix not in LINKED_SUFFIXES:
                found += self._headers(one, flags)
        return list(dict.fromkeys(found))

    def _build(self, source: Path, build: CppBuild, link_flags: Sequence[str], suffix: str) -> Path:
        flags = self._compile_flags(source, build)
        sources = [one for one in (source, *build.sources) if one.suffix not in LINKED_SUFFIXES]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            objects = list(pool.map(lambda one: self._object(one, flags, is_placed=bool(build.data_files)), sources))
        ready = [one for one in build.sources if one.suffix in LINKED_SUFFIXES]
        libraries = [_linked(name) for name in build.libraries]
        packages = self._package_flags(build.packages, "--libs")
        inputs = [*map(str, objects), *map(str, ready), *link_flags, *libraries, *packages]
        found = _libraries(build, packages)
        files = [*objects, *ready, *found]
        shared = [path.parent.absolute() for path in found if ".so" in path.suffixes]
        folders = [f"-Wl,-rpath,{folder}" for folder in dict.fromkeys([self._halide.lib_dir, *shared])]
        key = ["link", *self._tools, *inputs, *folders, *(file_sha256(file) for file in files)]
        command = [
            self._compiler(),
            *inputs,
            f"-L{self._halide.lib_dir}",
            "-lHalide",
            *folders,
            "-ldl",
            "-lpthread",
        ]
        step = "\nName the missing sources with --source, libraries with --library or --pkg-config."

        def link(output: Path) -> None:
            self._run([*command, "-o", str(output)], (str(source), "does not link"), step)

        return self._cache.get_or_build(key, suffix, link)

    def _object(self, source: Path, flags: Sequence[str], *, is_placed: bool) -> Path:
        """Compile a source.

        Args:
            is_placed: it finds data by `__FILE__`, so an equal source elsewhere is not the same.
        """
        headers = self._headers(source, flags)
        key = [*self._key(source, flags), *headers.values(), *([str(source)] if is_placed else [])]

        def compile_source(output: Path) -> None:
            try:
                self._compile(source, flags, output)
            except GeneratorError as error:
                _refuse_old_style([source, *headers], error)
                raise

        return self._cache.get_or_build(key, ".o", compile_source)

    def _compile(self, source: Path, flags: Sequence[str], output: Path) -> None:
        def run(*more: str) -> None:
            command = [self._compiler(), *more, *language_flags(source, flags), "-c", str(source), "-o", str(output)]
            self._run(command, (str(source), "does not compile"), _COMPILE_STEP)

        if source.suffix != ".c" and self._precompiled is not None:
            try:
                return run(f"-I{self._precompiled}")
            except GeneratorError as error:
                if not _UNREADABLE.search(str(error)):
                    raise
        return run()

    @cached_property
    def _precompiled(self) -> Path | None:
        flags = language_flags(Path("halide.cpp"), halide_flags(self._halide))

        def run(command: Sequence[str]) -> None:
            self._run(command, ("Halide's header", "does not compile"), _COMPILE_STEP)

        return precompiled_header(self._halide, self._cache, self._compiler(), flags, run)

    @cached_property
    def _tools(self) -> list[str]:
        """What everything that is built depends on."""
        return [self._halide.version, str(self._halide.root), *compiler_facts(self._compiler())]

    def _key(self, source: Path, flags: Sequence[str]) -> list[str]:
        return ["object", *self._tools, *flags, file_sha256(source)]

    def _compile_flags(self, source: Path, build: CppBuild) -> list[str]:
        stubs = stub_folder(source, build, self._cache, self.build_generator, self._environment)
        return [
            *halide_flags(self._halide),
            *(f"-I{folder}" for folder in (*build.include_folders, *([] if stubs is None else [stubs]))),
            *(f"-D{definition}" for definition in build.definitions),
            *self._package_flags(build.packages, "--cflags"),
            *build.flags,
        ]

    def _headers(self, source: Path, flags: Sequence[str]) -> dict[Path, str]:
        """The user's headers that a source reads, with their hashes.

        The compiler is asked again once one of them has changed, or one that was looked for in vain is there.
        """
        key = hashlib.sha256("\0".join([*self._key(source, flags), str(source)]).encode()).hexdigest()
        note = self._cache.root / "headers" / f"{key}.json"
        known = _read_note(note)
        if known is None:
            command = [self._compiler(), *language_flags(source, flags), "-M", "-MT", "x", str(source)]
            with scratch_folder("headers") as folder:
                rule = folder / "rule.d"
                self._run([*command, "-MF", str(rule)], (str(source), "does not compile"), _COMPILE_STEP)
                read = _dependencies(rule.read_text())
            known = {path: file_sha256(path) for path in read if path != source and not self._is_system(path)}
            folders = [Path(flag[2:]) for flag in flags if flag.startswith("-I")]
            facts = {
                "read": {str(path): sha256 for path, sha256 in known.items()},
                "missing": [str(path) for path in _missing([source, *known], folders)],
            }
            with self._cache.writing():
                note.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(note, json.dumps(facts).encode())
        return known

    def _is_system(self, header: Path) -> bool:
        folders = (*_SYSTEM_FOLDERS, self._halide.root, stubs_root(self._cache))
        return any(header.is_relative_to(folder) for folder in folders)

    def _package_flags(self, packages: Sequence[str], what: str) -> list[str]:
        if not packages:
            return []
        program = find_compiler(("pkg-config",), self._environment, "--pkg-config needs pkg-config", _PKG_CONFIG_STEP)
        failure = ("pkg-config", f"does not know {', '.join(packages)}")
        log = self._run([program, what, *packages], failure, _PACKAGE_STEP)
        return log.split()

    def _compiler(self) -> str:
        fix = "On Debian: apt-get install g++. Python generators can be tuned without one."
        return find_compiler(CPP_COMPILERS, self._environment, "A C++ compiler is needed", fix)

    def _run(self, command: Sequence[str], failure: tuple[str, str], next_step: str) -> str:
        """Run a command; what it prints. A failure is what it is about, and what that does not."""
        outcome = run_limited(command, _COMPILE_LIMITS, environment=self._environment, stop=self._stop)
        if outcome.succeeded:
            return outcome.log
        if outcome.stopped:
            raise ToolchainError(f"The compiler was stopped before {failure[0]} was compiled.")
        raise GeneratorError(
            f"{' '.join(failure)} ({Path(command[0]).name} {outcome.describe()}):\n{first_errors(outcome.log, _ERROR)}",
            next_step=renamed_step(outcome.log) or next_step,
        )


def _refuse_old_style(files: Iterable[Path], error: GeneratorError) -> None:
    for file in files:
        if is_old_style(file.read_text(errors="replace")):
            raise GeneratorError(
                f"{file} is a generator in the style of Halide before 10, with Func build(), which Halide no longer"
                " compiles.",
                next_step=OLD_STYLE_STEP,
            ) from error


def halide_flags(halide: HalideInstall) -> list[str]:
    """What all is compiled with that includes Halide's header.

    A plug-in is to have no fixed place; a generator may as well have none, and one parsed header serves both.
    """
    return [f"-I{halide.include_dir}", f"-I{halide.tools_dir}", "-fPIC"]


def language_flags(source: Path, flags: Sequence[str]) -> list[str]:
    """The flags with those of the source's language: C takes none of C++'s."""
    if source.suffix == ".c":
        return ["-x", "c", *(flag for flag in flags if not flag.startswith(_CPP_FLAGS))]
    # The wheel's libHalide is built without run-time type information.
    return ["-std=c++17", "-fno-rtti", *flags]


def _linked(library: str) -> str:
    return library if is_library_path(library) or library.startswith("-") else f"-l{library}"


def _libraries(build: CppBuild, package_flags: Sequence[str]) -> list[Path]:
    """The files of libraries, those of packages among them; for one that is missing the linker has the better words."""
    return [file for file in library_files([*build.libraries, *package_flags]) if file.is_file()]


def _read_note(note: Path) -> dict[Path, str] | None:
    """The headers of a note with their hashes, if all of them are as they were and no other is in their place."""
    try:
        facts = json.loads(note.read_text())
        read = {Path(name): str(sha256) for name, sha256 in facts["read"].items()}
        is_current = all(file_sha256(path) == sha256 for path, sha256 in read.items())
        return read if is_current and not any(Path(name).exists() for name in facts["missing"]) else None
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return None


def _missing(files: Sequence[Path], folders: Sequence[Path]) -> list[Path]:
    """Where the compiler would look for what the files include, as far as nothing is there."""
    places: dict[Path, None] = {}
    for file in files:
        for name in _INCLUDED.findall(file.read_text(errors="replace")):
            places |= dict.fromkeys(folder / name for folder in (file.parent, *folders))
    return [place for place in places if not place.exists()]


def _dependencies(rule: str) -> list[Path]:
    """The files of a rule for make, as compilers print them."""
    words = re.findall(r"(?:\\[ #]|[^\s\\])+", rule.partition(":")[2].replace("\\\n", " "))
    return [Path(re.sub(r"\\([ #])", r"\1", word).replace("$$", "$")) for word in words]
