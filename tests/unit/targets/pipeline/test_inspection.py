"""Sizes that nobody gave follow from the others."""

from __future__ import annotations

import pytest

from halide_autotune.targets.pipeline.facts import PipelineFacts, SizeSource, estimate_flags
from halide_autotune.targets.pipeline.inspection import Inspected, schedules_itself
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.unit.targets.pipeline.conftest import TARGET, Inspect, OpenProgram

pytestmark = pytest.mark.toolchain


def sizes(facts: PipelineFacts) -> dict[str, str]:
    return {argument.name: argument.text for argument in facts.arguments}


@pytest.mark.parametrize(
    ("way", "given", "expected"),
    [
        ("stencil", {"output": "640x480"}, {"input": "643x481@-1x0"}),
        ("stencil", {"input": "640x480"}, {"output": "637x479"}),
        ("stencil", {"output": "640x480@10x20"}, {"input": "643x481@9x20"}),
        # Any input will do: as large as the output.
        ("bordered", {"output": "640x480"}, {"input": "640x480"}),
        ("bordered", {"input": "640x480"}, {"output": "640x480"}),
        ("halved", {"output": "640x480"}, {"input": "1280x960"}),
        ("halved", {"input": "1280x960"}, {"output": "640x480"}),
        ("summed", {"input": "1000x480"}, {"output": "1000x480"}),
    ],
)
def test_sizes_follow_from_each_other(
    inspect: Inspect, way: str, given: dict[str, str], expected: dict[str, str]
) -> None:
    facts = inspect("sizes.cpp", given, way=way)
    assert sizes(facts).items() >= {**given, **expected}.items()
    named = {argument.name: argument for argument in facts.arguments}
    assert all(named[name].comes_from(SizeSource.INFERRED) for name in expected)
    assert all(named[name].comes_from(SizeSource.GIVEN) for name in given)


def test_a_scalar_has_its_default_and_else_a_proposal(inspect: Inspect) -> None:
    facts = inspect("sizes.cpp", {"output": "640x480"})
    gain, radius = (argument for argument in facts.inputs if argument.is_scalar)
    assert (gain.text, gain.source) == ("1", SizeSource.DEFAULT)
    assert (radius.text, radius.source) == ("2", SizeSource.GENERATOR)
    assert estimate_flags(facts.coming_from(SizeSource.DEFAULT)) == "--estimate gain=1"


def test_without_any_size_there_is_a_proposal(inspect: Inspect) -> None:
    facts = inspect("sizes.cpp")
    assert {argument.name for argument in facts.coming_from(SizeSource.DEFAULT)} == {"gain", "output"}
    assert sizes(facts)["output"] == "1920x1080"
    assert sizes(facts)["input"] == "1923x1081@-1x0"


def test_the_plugin_is_told_outputs_by_their_place(inspect: Inspect) -> None:
    told = inspect("sizes.cpp", {"output": "64x48", "gain": "0.5"}).estimates()
    assert told == {"input": "67x49@-1x0", "gain": "0.5", "radius": "2", "#0": "64x48"}


@pytest.mark.parametrize("file_name", ["scheduled.cpp", "scheduled.py"])
def test_what_the_generator_says_stays(inspect: Inspect, file_name: str) -> None:
    facts = inspect(file_name)
    assert sizes(facts)["output"] == "256x128"
    assert not any(facts.coming_from(source) for source in (SizeSource.DEFAULT, SizeSource.INFERRED))
    assert facts.scheduled == ()


def test_what_the_user_says_wins(inspect: Inspect) -> None:
    facts = inspect("scheduled.cpp", {"output": "100x50"})
    assert sizes(facts) == {"input": "259x131", "output": "100x50"}


def test_an_input_that_is_too_small_is_seen(inspect: Inspect) -> None:
    facts = inspect("sizes.cpp", {"input": "640x480@0x0", "output": "640x480"})
    (input_,) = (argument for argument in facts.inputs if not argument.is_scalar)
    assert [dimension.is_too_small for dimension in input_.dimensions] == [True, True]
    assert [dimension.required for dimension in input_.dimensions] == [(-1, 643), (0, 481)]


@pytest.mark.parametrize(("way", "expected"), [("none", False), ("loops", True), ("guarded", True)])
def test_whether_a_generator_schedules_itself(
    open_program: OpenProgram, cpp_compiler: HostCppCompiler, way: str, expected: bool
) -> None:
    for file_name in ("scheduled.cpp", "scheduled.py"):
        inspected = Inspected(open_program(file_name), "scheduled", {"way": way}, TARGET)
        assert schedules_itself(inspected, cpp_compiler) is expected


def test_a_schedule_behind_a_guard_is_not_in_the_way(inspect: Inspect) -> None:
    assert inspect("scheduled.cpp", way="guarded").scheduled == ()
    assert inspect("scheduled.py", way="guarded").scheduled == ()


def test_a_pipeline_that_the_generator_runs_itself_is_not_the_one(inspect: Inspect) -> None:
    assert sizes(inspect("calibrated.cpp", {"output": "640"})) == {"input": "640@3", "output": "640"}


def test_its_own_schedule_is_seen(open_program: OpenProgram, cpp_compiler: HostCppCompiler) -> None:
    assert schedules_itself(Inspected(open_program("calibrated.cpp"), "calibrated", {}, TARGET), cpp_compiler)
