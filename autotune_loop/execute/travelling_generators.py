"""What a run's generators are made from, packed so that workers on other machines can build them."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.targets.errors import FarmError, os_error_as
from halide_autotune.targets.generator.python_modules import modules_beside
from halide_autotune.targets.generator.reference import GeneratorKind, GeneratorReference
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.cpp_build import CppBuild, library_files
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

# Stands in references for the folder where a worker unpacks: each generator of several files has one below it.
UNPACKED = Path("/unpacked")


@dataclass(frozen=True)
class TravellingGenerators:
    """Tasks whose generators lie in one file each, or below `UNPACKED`.

    Attributes:
        archives: by the name of the folder below `UNPACKED` that each belongs in.
    """

    tasks: tuple[TuningTask, ...]
    archives: dict[str, Path]


def travelling_generators(tasks: Sequence[TuningTask], workspace: Workspace) -> TravellingGenerators:
    """Pack the generators of several files, each once.

    Raises:
        FarmError: a file cannot be read, or the archive not written.
        GeneratorError, ToolchainError: a C++ generator cannot be built here.
    """
    packed: dict[tuple[Path, CppBuild], GeneratorReference] = {}
    archives: dict[str, Path] = {}
    moved = []
    for task in tasks:
        given = task.reference
        if (given.file, given.build) not in packed:
            portable, files = _portable(given, workspace)
            if files != [portable.file]:
                name = str(len(archives))
                root = Path(os.path.commonpath([*(path.parent for path in files), *portable.build.include_folders]))
                archives[name] = _packed(files, root, workspace.work_folder / f"generator-{name}.tar")
                portable = _moved(portable, root, UNPACKED / name)
            packed[given.file, given.build] = portable
        found = packed[given.file, given.build]
        reference = replace(given, file=found.file, kind=found.kind, build=found.build)
        moved.append(replace(task, incumbent=None, reference=reference))
    return TravellingGenerators(tuple(moved), archives)


def unpack_generator(archive: Path, folder: Path) -> None:
    """Put the files of a generator where its worker builds it.

    Raises:
        FarmError: it is no such archive, a name leads out of the folder, or a file cannot be written.
    """
    try:
        with os_error_as(FarmError, f"Cannot unpack {archive.name}"), tarfile.open(archive) as content:
            content.extractall(folder, filter="data")
    except tarfile.TarError as error:
        raise FarmError(f"{archive.name} cannot be unpacked: {error}.") from error


def _portable(reference: GeneratorReference, workspace: Workspace) -> tuple[GeneratorReference, list[Path]]:
    """The generator as a worker can open it, and all files that it is made from."""
    given = reference.build
    data = [_plain(path) for path in given.data_files]
    # Kernels are linked where the run is, so workers need nothing of what they call.
    build = CppBuild(data_files=tuple(data))
    if reference.kind is GeneratorKind.EXECUTABLE:
        return replace(reference, build=build), [reference.file, *data]
    if reference.kind is GeneratorKind.PYTHON:
        return replace(reference, build=build), _once([reference.file, *modules_beside(reference.file), *data])
    compiler = HostCppCompiler(find_halide_install(), ContentCache(workspace.cache_folder), workspace.environment)
    if not _is_described_by_files(given):
        built = compiler.build_generator(reference.file, given)
        return replace(reference, file=built, kind=GeneratorKind.EXECUTABLE, build=build), [built, *data]
    made_from = replace(given, kernel_sources=(), data_files=())
    files = _once([*map(_plain, compiler.files_of(reference.file, made_from)), *data])
    folders = [_plain(folder) for folder in given.include_folders]
    build = replace(
        made_from,
        sources=tuple(map(_plain, given.sources)),
        include_folders=tuple(folder for folder in folders if any(path.is_relative_to(folder) for path in files)),
        data_files=tuple(data),
        cmake=None,
        cmake_target=None,
        cmake_is_built=False,
    )
    return replace(reference, build=build), files


def _is_described_by_files(build: CppBuild) -> bool:
    """Whether no flag and no library names a place on this machine; else only what is built here can travel."""
    return not any("/" in flag for flag in build.flags) and not library_files(build.libraries)


def _once(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(paths))


def _plain(path: Path) -> Path:
    """The path without dots; links stay, because headers are found by their names."""
    return Path(os.path.normpath(path.absolute()))


def _packed(files: Sequence[Path], root: Path, archive: Path) -> Path:
    """Equal files give equal archives, which are sent once."""
    with os_error_as(FarmError, f"Cannot pack the generator for the farm's workers into {archive}"):
        archive.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_archive(files, root, archive)
        except OSError:
            archive.unlink(missing_ok=True)
            raise
    return archive


def _write_archive(files: Sequence[Path], root: Path, archive: Path) -> None:
    with tarfile.open(archive, "w", dereference=True) as content:
        for path in sorted(files):
            about = content.gettarinfo(path, path.relative_to(root).as_posix())
            about.uid = about.gid = about.mtime = 0
            about.uname = about.gname = ""
            about.mode = 0o755 if about.mode & 0o100 else 0o644
            with path.open("rb") as file:
                content.addfile(about, file)


def _moved(reference: GeneratorReference, root: Path, place: Path) -> GeneratorReference:
    def moved(path: Path) -> Path:
        return place / path.relative_to(root)

    build = reference.build
    build = replace(
        build,
        sources=tuple(map(moved, build.sources)),
        include_folders=tuple(map(moved, build.include_folders)),
        data_files=tuple(map(moved, build.data_files)),
    )
    return replace(reference, file=moved(reference.file), build=build)
