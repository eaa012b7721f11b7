"""`--cmake`: GENERATOR is the name of a target, typed or in sdk.toml, and is kept by the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.store.run_record import RunRecord
from halide_autotune.sdk.commands.autotune.follow_up import follow_up
from halide_autotune.sdk.options.autotune_options import given_generators
from halide_autotune.sdk.options.generator_spec import GeneratorSpec
from halide_autotune.sdk.options.resume_options import resumed_folder, resumed_options
from halide_autotune.sdk.project.file import Project, find_project
from halide_autotune.sdk.project.preparation import named_generator, open_workbench
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import ToolchainError, UsageError
from halide_autotune.targets.generator.reference import GeneratorKind
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from tests.run_specs import make_record, make_spec, make_task
from tests.unit.sdk.display.recorded_run import RESULT, TUNED

LISTED = '[[generators]]\nname = "blur"\ngenerator = "filters:blur"\nbuild = {cmake = "out"}\n'


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    made = CppBuild(definitions=("A",), cmake=tmp_path / "out", cmake_target="filters")
    task = make_task(file=tmp_path / "blur.cpp")
    reference = replace(task.reference, kind=GeneratorKind.CPP, build=made)
    return make_record(make_spec(replace(task, reference=reference)))


def test_a_target_is_named_on_the_command_line_or_in_the_projects_file(tmp_path: Path) -> None:
    typed = {"generator": ("filters:blur",), "cmake": Path("out")}
    assert given_generators(typed, Project(folder=tmp_path)) == (
        GeneratorSpec("filters:blur", build=CppBuild(cmake=Path("out"))),
    )
    (tmp_path / "sdk.toml").write_text(LISTED)
    listed = GeneratorSpec("filters:blur", build=CppBuild(cmake=tmp_path / "out"))
    assert given_generators({"generator": ("blur",)}, find_project(tmp_path)) == (listed,)
    assert given_generators({}, find_project(tmp_path)) == (listed,)


def test_a_built_folder_is_said_of_a_folder_only(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(UsageError, match=r"--cmake-is-built needs --cmake\."):
        named_generator("blur.cpp", (), open_workbench(settings), settings, CppBuild(cmake_is_built=True))


def test_a_run_is_resumed_by_its_target_and_not_with_another_folder(record: RunRecord, tmp_path: Path) -> None:
    same = {"generator": ("filters:blur",), "cmake": tmp_path / "out", "cmake_is_built": True}
    assert resumed_options(record, same) == record.spec.options
    other = tmp_path / "other"
    with pytest.raises(UsageError, match=rf"made with --cmake .*out, not --cmake {other}\. Resume it without --cmake"):
        resumed_options(record, {"cmake": other})
    # Which run is meant is told by what CMake has said before; nothing is configured for that.
    with pytest.raises(ToolchainError, match="has no reply of CMake's file API"):
        resumed_folder(same, None, Project(folder=tmp_path))


def test_what_is_typed_next_names_the_target(
    record: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record.write(tmp_path)
    result = replace(RESULT, run_folder=tmp_path, tuned=(replace(TUNED, header=tmp_path / "best.h"),))
    assert follow_up(result)["use it"] == "sdk build filters:blur --target arm64 --cmake out --schedule best.h"
