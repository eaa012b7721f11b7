"""What a pipeline's Funcs and loops are called in drafts: the same in every process."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import ComputeAt, Parallel
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    DimensionList,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
)
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.values import OUTERMOST, ROOT
from halide_autotune.autotune_loop.sketches.sketches import sketches
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.pipeline.shape import FuncShape, PipelineShape, StageShape
from tests.drafted_pipelines import RECORDED, func, loop, pipeline, read, recorded


def named(name: str, *loops: str, updates: tuple[tuple[str, ...], ...] = ()) -> FuncShape:
    """A Func whose update loops are reductions as far as they have a dollar sign."""

    def stage(row: tuple[str, ...]) -> StageShape:
        described = tuple(loop(each, 8, "ordered" if "$" in each else "pure") for each in row)
        return StageShape(described, (), 1, False, False, False)

    stages = (stage(loops), *map(stage, updates))
    return FuncShape(name, loops, (8,) * len(loops), False, False, 4, 4, (), stages)


def test_identifiers_are_halides_names_as_far_as_they_can_be() -> None:
    names = PipelineNames(PipelineShape(32, (named("sum$1", "x"), named("int", "x"), named("sum_1", "y"))))
    assert names.funcs == {"sum$1": "sum_1", "int": "int_", "sum_1": "sum_1_"}
    assert list(names.shapes) == ["sum_1", "int_", "sum_1_"]


def test_loops_of_one_name_have_one_identifier_so_that_they_can_be_one() -> None:
    names = PipelineNames(PipelineShape(32, (named("f", "x", "y"), named("g", "x", "z", updates=(("r$x", "x"),)))))
    assert [each.identifier for each in names.loops("f", 0)] == ["x", "y"]
    assert [each.identifier for each in names.loops("g", 1)] == ["r_x", "x"]
    assert names.original["x"] == Variable("x", False, "x")
    assert names.original["r_x"] == Variable("r_x", True, "r$x")
    assert names.loops("g", 2) == names.loops("none", 0) == ()


def test_a_loop_is_not_called_like_a_func() -> None:
    names = PipelineNames(PipelineShape(32, (named("x", "x", "y"),)))
    assert [each.identifier for each in names.loops("x", 0)] == ["x_", "y"]


@pytest.mark.parametrize(
    ("func", "identifier"),
    [("xi", "xi_func"), ("xo_yi", "xo_yi_func"), ("xoi_", "xoi__func"), ("ri", "ri"), ("x", "x"), ("x_yz", "x_yz")],
)
def test_a_func_is_not_called_like_a_loop_that_is_made_of_others(func: str, identifier: str) -> None:
    names = PipelineNames(PipelineShape(32, (named(func, "x", "y"), named("output", "x", "y"))))
    assert names.funcs == {func: identifier, "output": "output"}
    assert "x" not in names.shapes or [each.identifier for each in names.loops("x", 0)] == ["x_", "y"]


def test_funcs_that_are_called_like_loops_do_not_hinder_a_schedule() -> None:
    """Real and imaginary parts are often `xr` and `xi`."""
    both = (read("xr", ("x", 1), ("y", 1)), read("xi", ("x", 1), ("y", 1)))
    funcs = (func("xr", (64, 48)), func("xi", (64, 48)), func("output", (64, 48), *both))
    names = pipeline(*funcs)
    for sketch in sketches(names, 4):
        schedule = schedule_of(sketch.draft, names, "f")
        check_schedule(schedule)
        assert draft_of(schedule, names) == sketch.draft


def test_what_nobody_named_is_found_by_its_place_as_its_name_differs_between_processes() -> None:
    first = PipelineNames(PipelineShape(32, (named("f", "v17", "y", updates=(("r4$x", "v17"),)),)))
    second = PipelineNames(PipelineShape(32, (named("f", "v3", "y", updates=(("r21$x", "v3"),)),)))
    assert first.loops("f", 0) == second.loops("f", 0) and first.loops("f", 1) == second.loops("f", 1)
    assert first.loops("f", 0)[0] == Variable("f_v", False, Accessor("f", None, DimensionList.DIMS, 0))
    assert first.loops("f", 1)[0] == Variable("f_r_x", True, Accessor("f", 0, DimensionList.DIMS, 0))


def test_a_schedules_variable_is_found_by_name_or_by_place() -> None:
    shape = PipelineShape(32, (named("f", "x", "y", updates=(("r$x", "y"),)),))
    places: dict[str, str | Accessor] = {
        "by_name": "y",
        "arg": Accessor("g", None, DimensionList.ARGS, 1),
        "rvar": Accessor("g", 0, DimensionList.RVARS, 0),
        "dim": Accessor("g", 0, DimensionList.DIMS, 1),
        "no_such": Accessor("g", 0, DimensionList.RVARS, 1),
        "no_stage": Accessor("g", 1, DimensionList.DIMS, 0),
        "no_func": Accessor("h", None, DimensionList.DIMS, 0),
    }
    variables = tuple(Variable(name, False, source) for name, source in places.items())
    schedule = Schedule("f", (ScheduledFunc("g", ByIndex(0)),), variables, ())
    names = PipelineNames(shape)
    found = {name: names.halide_name(name, schedule, {"g": "f"}) for name in (*places, OUTERMOST, "unknown")}
    assert found == {
        "by_name": "y",
        "arg": "y",
        "rvar": "r$x",
        "dim": "y",
        "no_such": None,
        "no_stage": None,
        "no_func": None,
        OUTERMOST: OUTERMOST,
        "unknown": None,
    }


@pytest.mark.parametrize(("name", "is_plain"), [("row_index", True), ("row-index", False), ("größe", False)])
def test_names_that_are_no_identifiers_are_printed_read_and_told(name: str, is_plain: bool) -> None:
    """Halide takes any; the headers that its autoschedulers write are no C++ then."""
    names = PipelineNames(PipelineShape(32, (named(f"{name}_f", name, "y"), named("output", name, "y"))))
    assert names.are_plain is is_plain
    funcs, variables = (ScheduledFunc("output", ByIndex(1)),), (Variable("x", False, name),)
    schedule = Schedule("f", funcs, variables, (StageSchedule("output", None, (ComputeAt(ROOT), Parallel("x"))),), None)
    assert parse_json(print_json(schedule)) == parse_schedule(print_header(schedule, "f")) == schedule


@pytest.mark.parametrize("name", ["", 'a"b', "a\\b", "a\nb", "a\u2028b"])
def test_what_would_end_a_string_is_no_name(name: str) -> None:
    with pytest.raises(GeneratorError, match="is not a variable name"):
        check_schedule(Schedule("f", (), (Variable("x", False, name),), (), None))


def test_every_loop_of_a_real_pipeline_has_a_name() -> None:
    for example in RECORDED:
        names = recorded(example)
        for each, shape in names.shapes.items():
            for index, stage in enumerate(shape.stages):
                row = names.loops(each, index)
                assert len({each.identifier for each in row}) == len(row) == len(stage.loops)
                assert [each.is_reduction for each in row] == [each.is_reduction for each in stage.loops]
        assert not set(names.original) & set(names.shapes)
