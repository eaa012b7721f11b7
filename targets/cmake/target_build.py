"""From a CMake target to what the SDK's compiler needs to build it as CMake does."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from halide_autotune.targets.cmake.reply import CMakeReply, CMakeTarget, CompileGroup
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.toolchain.cpp_build import LINKED_SUFFIXES, CppBuild

_LANGUAGES = ("CXX", "C")
# The SDK links with the Halide that it has, which must be the only one.
_HALIDE = re.compile(r"libHalide(_GenGen)?\.(a|so[.\d]*)")
_REGISTERED = re.compile(r"\bHALIDE_REGISTER_GENERATOR(?:_ALIAS)?\s*\(([^)]*)")
# CMake compiles a header of its own first, which is then included by a flag.
_PRECOMPILES = ("c-header", "c++-header")


def target_build(reply: CMakeReply, target: CMakeTarget, name: str | None) -> CppBuild:
    """Return what a target is made from; the first source is the one that registers the generator `name`.

    Raises:
        GeneratorError: it has no C++ source, one in another language, or sources that are compiled differently.
    """
    groups: dict[int, list[Path]] = {}
    ready = []
    for source in target.sources:
        path = reply.source_folder / source.path
        if source.compileGroupIndex is not None:
            groups.setdefault(source.compileGroupIndex, []).append(path)
        elif path.suffix in LINKED_SUFFIXES:
            ready.append(path)
    compiled = [(_group(target, index), paths) for index, paths in sorted(groups.items())]
    compiled = [(group, paths) for group, paths in compiled if not set(_flags(group)) & set(_PRECOMPILES)]
    group = _common_group(reply, target, compiled)
    sources = [path for _, paths in compiled for path in paths]
    first = _registering(target, sources, name)
    includes = sorted(group.includes, key=lambda include: include.isSystem)
    return CppBuild(
        sources=(first, *(path for path in sources if path != first), *ready),
        include_folders=tuple(dict.fromkeys(Path(include.path) for include in includes)),
        definitions=tuple(define.define for define in group.defines),
        flags=_with_language(group),
        libraries=_libraries(reply, target),
    )


def needed_first(reply: CMakeReply, target: CMakeTarget) -> tuple[str, ...]:
    """Return the targets to build before this one can be compiled; itself, where CMake generates sources of its own."""
    own = [
        source
        for source in target.sources
        if source.isGenerated and Path(source.path).suffix not in (*LINKED_SUFFIXES, ".rule")
    ]
    if own:
        return (target.name,)
    wanted = {dependency.id for dependency in target.dependencies}
    return tuple(entry.name for entry in reply.targets if entry.id in wanted)


def _group(target: CMakeTarget, index: int) -> CompileGroup:
    if not 0 <= index < len(target.compileGroups):
        raise GeneratorError(f"CMake's reply about {target.name} is damaged: there is no compile group {index}.")
    return target.compileGroups[index]


def _common_group(
    reply: CMakeReply, target: CMakeTarget, compiled: list[tuple[CompileGroup, list[Path]]]
) -> CompileGroup:
    """How all of its sources are compiled: as the C++ ones are, if those in C differ in flags of the language alone."""
    for group, paths in compiled:
        if group.language not in _LANGUAGES:
            raise GeneratorError(
                f"{paths[0]} of {target.name} is in {group.language}, which the SDK does not compile.",
                next_step=_built_by_cmake(reply, target),
            )
    first = next((group for group, _ in compiled if group.language == "CXX"), None)
    if first is None:
        raise GeneratorError(
            f"{target.name} has no C++ source, so it is no generator.", next_step="Name a generator's target."
        )
    for group, paths in compiled:
        if _settings(group) != _settings(first):
            raise GeneratorError(
                f"{paths[0]} of {target.name} is compiled with definitions, folders or flags of its own, which the SDK"
                " cannot do.",
                next_step=_built_by_cmake(reply, target),
            )
    return first


def _built_by_cmake(reply: CMakeReply, target: CMakeTarget) -> str:
    built = reply.folder / next((artifact.path for artifact in target.artifacts), target.name)
    return f"Build it, and give the executable as GENERATOR without --cmake: {built}"


def _settings(group: CompileGroup) -> CompileGroup:
    flags = [flag for flag in _flags(group) if not flag.startswith(("-std=", "-W"))]
    fragments = tuple(replace(group.compileCommandFragments[0], fragment=flag, role="") for flag in flags)
    return replace(group, language="", languageStandard=None, compileCommandFragments=fragments)


def _flags(group: CompileGroup) -> list[str]:
    return [flag for part in group.compileCommandFragments for flag in _words(part.fragment)]


def _words(fragment: str) -> list[str]:
    try:
        return shlex.split(fragment)
    except ValueError as error:
        raise GeneratorError(f"CMake's reply is damaged: {fragment!r} has a quote that does not end.") from error


def _with_language(group: CompileGroup) -> tuple[str, ...]:
    """The flags, with what CMake leaves to the compiler's defaults and the SDK does not."""
    flags = _flags(group)
    if group.languageStandard is not None and not any(flag.startswith("-std=") for flag in flags):
        flags.insert(0, f"-std=gnu++{group.languageStandard.standard}")
    if "-fno-rtti" not in flags:
        flags.insert(0, "-frtti")
    return tuple(flags)


def _registering(target: CMakeTarget, sources: list[Path], name: str | None) -> Path:
    """The source that registers the generator, else the first that registers any, else the first.

    Raises:
        GeneratorError: none registers any, and Halide's main is not linked: this is another program.
    """
    registered = {path: _registered(path) for path in sources}
    registering = [path for path in sources if registered[path]]
    has_main = any("Halide_GenGen" in part.fragment for part in target.link.commandFragments)
    if not registering and not has_main and all(path.exists() for path in sources):
        raise GeneratorError(
            f"{target.name} is no generator: no source of it has HALIDE_REGISTER_GENERATOR.",
            next_step="Name the target of a generator, such as one of add_halide_generator.",
        )
    named = [path for path in sources if name in registered[path]]
    return next(iter([*named, *registering, *sources]))


def _registered(source: Path) -> list[str]:
    """The classes and names of the generators that a source registers."""
    try:
        return [
            word.strip()
            for words in _REGISTERED.findall(source.read_text(errors="replace"))
            for word in words.split(",")
        ]
    except OSError:
        return []


def _libraries(reply: CMakeReply, target: CMakeTarget) -> tuple[str, ...]:
    """What is linked, in CMake's order: names, paths and the linker's flags, without Halide itself."""
    parts: list[str] = []
    for part in target.link.commandFragments:
        # Where libraries are found at run time is said by their paths.
        parts += [word for word in _words(part.fragment) if not word.startswith("-Wl,-rpath,")]
    places = (reply.folder / target.paths.build, reply.folder)
    return tuple(_library(word, places) for word in parts if not _HALIDE.fullmatch(Path(word).name))


def _library(word: str, places: Iterable[Path]) -> str:
    """A library by its name or whole path. Makefiles are relative to the target's own folder, Ninja's to the root's."""
    if word.startswith("-l"):
        return word.removeprefix("-l")
    if word.startswith("-") or Path(word).is_absolute():
        return word
    found = [place / word for place in places]
    return str(next((path.resolve() for path in found if path.is_file()), found[-1]))
