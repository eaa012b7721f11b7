"""What workers are sent of a generator, and that it is all they need."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.execute.messages import RemoteRun, decode, encode_run
from halide_autotune.autotune_loop.execute.travelling_generators import unpack_generator
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.devices.local.cores import plan_cores
from halide_autotune.targets.errors import FarmError
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import GeneratorKind, GeneratorReference, parse_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache, file_sha256
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.generator_projects import cpp_project, python_project
from tests.run_specs import make_context, make_spec


def _context(folder: Path, *references: GeneratorReference) -> RunContext:
    folder.mkdir(exist_ok=True)
    tasks = [TuningTask(reference, "filter") for reference in references]
    cores = plan_cores(frozenset(os.sched_getaffinity(0)), 0)
    return make_context(make_spec(*tasks), (), folder, cores, dict(os.environ))


def _arrived(folder: Path, *references: GeneratorReference) -> list[GeneratorReference]:
    """The generators as a worker has them."""
    message, files = encode_run("run", _context(folder / "sender", *references))
    assert str(folder).encode() not in message
    run, place = decode(message, RemoteRun), folder / "worker"
    for name, key in run.archives.items():
        unpack_generator(files[key], place / name)
    tasks = decode(run.tuning_tasks, tuple[TuningTask, ...], files.__getitem__, place)
    return [task.reference for task in tasks]


@pytest.mark.toolchain
@pytest.mark.parametrize("project", [cpp_project, python_project])
def test_a_generator_of_several_files_is_built_from_what_has_arrived(
    project: Callable[[Path], GeneratorReference], tmp_path: Path, halide: HalideInstall
) -> None:
    first, again = _arrived(tmp_path, project(tmp_path / "home"), project(tmp_path / "home"))
    assert first == again, "it is one program"
    shutil.rmtree(tmp_path / "home")
    compiler = HostCppCompiler(halide, ContentCache(tmp_path / "cache"), dict(os.environ))
    program = open_generator(first, halide, compiler, dict(os.environ))
    assert program.names == ("filter",)
    program.close()
    names = {path.relative_to(tmp_path / "worker").as_posix() for path in (tmp_path / "worker").rglob("*")}
    assert "0/data/gain.txt" in names and not any("unused" in name or name.startswith("1") for name in names)


@pytest.mark.toolchain  # the compiler says which headers there are
def test_a_generator_of_one_file_travels_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "blur.cpp").write_text("")
    (tmp_path / "include").mkdir()
    reference = parse_generator(f"{tmp_path}/blur.cpp", (), CppBuild(include_folders=(tmp_path / "include",)))
    (arrived,) = _arrived(tmp_path, reference)
    assert (arrived.file, arrived.build) == (tmp_path / "blur.cpp", CppBuild())


@pytest.mark.toolchain
def test_what_names_a_place_of_this_machine_travels_as_what_is_built_here(tmp_path: Path) -> None:
    reference = cpp_project(tmp_path / "home")
    build = reference.build
    flags = ("-fexceptions", f"-I{tmp_path}/home/include")
    given = CppBuild(sources=build.sources, definitions=build.definitions, flags=flags)
    (arrived,) = _arrived(tmp_path, GeneratorReference(reference.file, GeneratorKind.CPP, "filter", {}, given))
    assert (arrived.kind, arrived.build) == (GeneratorKind.EXECUTABLE, CppBuild())
    assert os.access(arrived.file, os.X_OK)


def test_equal_files_are_equal_archives(tmp_path: Path) -> None:
    hashes = set()
    for place in ("a", "b"):
        _, files = encode_run("run", _context(tmp_path / f"{place}-work", python_project(tmp_path / place)))
        hashes |= {file_sha256(path) for path in files.values()}
    assert len(hashes) == 1


def test_an_archive_stays_in_its_folder(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        about = tarfile.TarInfo("../outside.py")
        archive.addfile(about, io.BytesIO())
    with pytest.raises(FarmError, match="cannot be unpacked"):
        unpack_generator(tmp_path / "bad.tar", tmp_path / "inside")
    (tmp_path / "none.tar").write_text("nothing of the kind" * 100)
    with pytest.raises(FarmError, match="cannot be unpacked"):
        unpack_generator(tmp_path / "none.tar", tmp_path / "inside")
    assert not (tmp_path / "outside.py").exists()
