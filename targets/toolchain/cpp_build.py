"""How a C++ generator of more than one file is built, and what a generator of any kind comes with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.options import Option

# What the linker takes as it is.
LINKED_SUFFIXES = (".o", ".a", ".so")
_KERNEL_SUFFIXES = (".c", ".cpp", ".cc", ".cxx", ".o", ".a")
_PANEL = "How a C++ generator is built"
_MACRO = re.compile(r"[A-Za-z_]\w*(=.*)?", re.ASCII)
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


def existing_files(texts: Iterable[str]) -> list[str]:
    """The paths of files.

    Raises:
        UsageError: one is missing.
    """
    return _existing(texts, "file", Path.is_file)


def kernel_sources(texts: Iterable[str]) -> list[str]:
    """The paths of what kernels call: C and C++ sources, objects and static libraries.

    Raises:
        UsageError: one is missing, or something else.
    """
    found = existing_files(texts)
    for path in found:
        if Path(path).suffix not in _KERNEL_SUFFIXES:
            raise UsageError(f"{path} is no C or C++ source, object or static library ({', '.join(_KERNEL_SUFFIXES)}).")
    return found


def existing_folders(texts: Iterable[str]) -> list[str]:
    """The paths of folders.

    Raises:
        UsageError: one is missing.
    """
    return _existing(texts, "folder", Path.is_dir)


def _existing(texts: Iterable[str], what: str, exists: Callable[[Path], bool]) -> list[str]:
    paths = list(texts)
    for path in paths:
        if not exists(Path(path)):
            raise UsageError(f"there is no {what} {path}.")
    return paths


def macros(texts: Iterable[str]) -> list[str]:
    """Definitions NAME or NAME=VALUE.

    Raises:
        UsageError: one has another form.
    """
    found = list(texts)
    for text in found:
        if not _MACRO.fullmatch(text):
            raise UsageError(f"{text!r} must be NAME or NAME=VALUE, such as TILES=4.")
    return found


def packages(texts: Iterable[str]) -> list[str]:
    """Names of pkg-config.

    Raises:
        UsageError: one cannot be a name.
    """
    found = list(texts)
    for text in found:
        if not _PACKAGE.fullmatch(text):
            raise UsageError(f"{text!r} cannot be the name of a package.", next_step="See: pkg-config --list-all")
    return found


def is_library_path(library: str) -> bool:
    """Whether a library is given by its path, not by its name or as a flag of the linker."""
    return not library.startswith("-") and ("/" in library or library.endswith(LINKED_SUFFIXES))


def library_files(libraries: Iterable[str]) -> list[Path]:
    """The files of libraries that are given by their paths, or by their names and the linker's `-L` folders."""
    given = list(libraries)
    folders = [Path(text[2:]) for text in given if text.startswith("-L")]
    found: list[Path] = []
    for text in given:
        if is_library_path(text):
            found.append(Path(text))
        elif not text.startswith("-") or text.startswith("-l"):
            name = text.removeprefix("-l")
            files = (folder / f"lib{name}{suffix}" for folder in folders for suffix in (".so", ".a"))
            found += [file for file in files if file.is_file()][:1]
    return found


def libraries(texts: Iterable[str]) -> list[str]:
    """Names of libraries, and whole paths, also of the linker's `-L` folders.

    Raises:
        UsageError: there is no such file.
    """
    found = list(texts)
    existing_files(text for text in found if is_library_path(text))
    return [_whole(text) for text in found]


def _whole(library: str) -> str:
    if library.startswith("-L") and library != "-L":
        return f"-L{Path(library[2:]).absolute()}"
    return str(Path(library).absolute()) if is_library_path(library) else library


@dataclass(frozen=True)
class CppBuild:
    """What the compiler needs beside the generator's own file, in the order in which it was given.

    Attributes:
        sources: further C++ or C sources, objects and static libraries.
        include_folders: searched for headers.
        definitions: macros, NAME or NAME=VALUE.
        flags: passed to the compiler as they are.
        libraries: names for the linker, paths of libraries, or flags of the linker.
        packages: names of pkg-config.
        cmake: a build folder of CMake, which says all of the above; None for none.
        cmake_is_built: take that folder as it is.
        cmake_target: the target that the above was read from; None for none.
        kernel_sources: C and C++ sources, objects and static libraries of the target that the kernels call. They are
            linked with kernels of any generator, one in Python, too.
        data_files: what a generator of any kind reads when it runs; it finds them from its own file's place.
    """

    sources: Annotated[
        tuple[Path, ...],
        Option(
            "--source",
            metavar="FILE",
            help="A further source (.cpp, .c), object or static library of the generator; repeat for more.",
            panel=_PANEL,
            parse=existing_files,
            is_fixed=True,
        ),
    ] = ()
    include_folders: Annotated[
        tuple[Path, ...],
        Option(
            "--include",
            metavar="FOLDER",
            help="A folder with its headers; repeat for more.",
            panel=_PANEL,
            parse=existing_folders,
            is_fixed=True,
        ),
    ] = ()
    definitions: Annotated[
        tuple[str, ...],
        Option(
            "--define",
            metavar="NAME[=VALUE]",
            help="A macro; repeat for more.",
            panel=_PANEL,
            parse=macros,
            is_fixed=True,
        ),
    ] = ()
    flags: Annotated[
        tuple[str, ...],
        Option(
            "--cxxflag",
            metavar="FLAG",
            help="A flag of the compiler, as --cxxflag=-std=c++20; repeat for more.",
            panel=_PANEL,
            name="cxx_flags",
            is_fixed=True,
        ),
    ] = ()
    libraries: Annotated[
        tuple[str, ...],
        Option(
            "--library",
            metavar="NAME",
            help="A library to link, by name (png) or path, or a flag of the linker; repeat for more.",
            panel=_PANEL,
            parse=libraries,
            is_fixed=True,
        ),
    ] = ()
    packages: Annotated[
        tuple[str, ...],
        Option(
            "--pkg-config",
            metavar="NAME",
            help="A package whose flags pkg-config knows; repeat for more.",
            panel=_PANEL,
            parse=packages,
            is_fixed=True,
        ),
    ] = ()
    cmake: Annotated[
        Path | None,
        Option(
            "--cmake",
            metavar="BUILD_DIR",
            help="A build folder of CMake: GENERATOR is then the name of a target, made from what CMake says.",
            panel=_PANEL,
            is_fixed=True,
        ),
    ] = None
    cmake_is_built: Annotated[
        bool,
        Option(
            "--cmake-is-built",
            help="Take the folder of --cmake as it is: do not run CMake, and build nothing in it.",
            panel=_PANEL,
        ),
    ] = False
    cmake_target: str | None = None
    kernel_sources: Annotated[
        tuple[Path, ...],
        Option(
            "--kernel-source",
            metavar="FILE",
            help="A source (.c, .cpp), object or static library with functions that the kernel calls when it runs, as"
            " extern stages do; sources are compiled for the target. Repeat for more.",
            panel=_PANEL,
            parse=kernel_sources,
            is_fixed=True,
        ),
    ] = ()

    data_files: Annotated[
        tuple[Path, ...],
        Option(
            "--data",
            metavar="FILE",
            help="A file that the generator reads when it runs, such as a table: it counts as a part of the generator,"
            " and a farm's workers have it, at the same place beside the generator's file. Repeat for more.",
            panel=_PANEL,
            parse=existing_files,
            is_fixed=True,
        ),
    ] = ()

    def of_any_kind(self) -> CppBuild:
        """The part that is there for generators of any kind: of kernels, and data."""
        if not self.kernel_sources:
            return CppBuild(data_files=self.data_files)
        return CppBuild(
            include_folders=self.include_folders,
            definitions=self.definitions,
            kernel_sources=self.kernel_sources,
            data_files=self.data_files,
        )
