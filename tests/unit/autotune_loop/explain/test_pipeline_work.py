"""What a pipeline has to compute at least, and what a schedule computes of it."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.explain.pipeline_work import PipelineWork
from halide_autotune.devices.timing.func_counts import Accesses, FuncCounts
from halide_autotune.targets.pipeline.shape import FuncShape, PipelineShape
from tests.drafted_pipelines import func, loop, read, stage

NONE = Accesses(0, 0, 0)


def counts(name: str, points: int, *extents: int) -> FuncCounts:
    return FuncCounts(name, "", NONE, NONE, points, 1, extents, 0, 0)


def with_arithmetic(of: FuncShape, *arithmetic: int) -> FuncShape:
    stages = zip(of.stages, arithmetic, strict=True)
    return replace(of, stages=tuple(replace(one, arithmetic=count) for one, count in stages))


BLUR = with_arithmetic(func("blur", (64, 32), read("input", ("x", 3), ("y", 1), is_input=True)), 3)
OUTPUT = with_arithmetic(func("output", (62, 32), read("blur", ("x", 2), ("y", 1))), 1)
SHAPE = PipelineShape(32, (BLUR, OUTPUT))
WHOLE = counts("output", 62 * 32, 62, 32)


def test_each_point_is_needed_once() -> None:
    work = PipelineWork(SHAPE, (counts("blur", 2 * 64 * 32, 64, 32), WHOLE))
    assert work.needed_points("blur") == 64 * 32 and work.needed_points("output") == 62 * 32
    assert work.needed_points("made_by_rfactor") is None


def test_updates_are_computed_too() -> None:
    update = stage(loops=(loop("x", 64), loop("r", 5, "ordered")))
    total = with_arithmetic(func("total", (64,), updates=(update,)), 0, 2)
    work = PipelineWork(PipelineShape(32, (total,)), (counts("total", 64 * 6, 64),))
    assert work.needed_points("total") == 64 + 64 * 5
    assert work.operations(counts("total", 64 * 6, 64)) == 2 * 64 * 5


def test_what_is_inlined_is_computed_where_it_is_read() -> None:
    assert PipelineWork(SHAPE, (WHOLE,)).operations(WHOLE) == 62 * 32 * (1 + 2 * 3)
    blur = counts("blur", 2 * 64 * 32, 64, 32)
    work = PipelineWork(SHAPE, (blur, WHOLE))
    assert work.operations(WHOLE) == 62 * 32 and work.operations(blur) == 3 * 2 * 64 * 32, "twice as often"


def test_nothing_is_told_of_extents_that_data_decide_or_of_another_size() -> None:
    unknown = replace(BLUR, extents=(None, 32))
    assert PipelineWork(PipelineShape(32, (unknown, OUTPUT)), (WHOLE,)).needed_points("blur") is None
    larger = counts("output", 1000 * 32, 1000, 32)
    assert PipelineWork(SHAPE, (larger,)).needed_points("output") is None
