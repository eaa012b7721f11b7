"""A printed Python module runs in Halide's Python."""

from __future__ import annotations

import halide as hl

from halide_autotune.autotune_loop.schedule.directives import Parallel
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    DimensionList,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
)
from halide_autotune.autotune_loop.schedule.print_python import print_python


def test_a_loop_of_an_update_is_found_by_its_place() -> None:
    x, y, at, summed = hl.Var("x"), hl.Var("y"), hl.RDom([(0, 3)], "at"), hl.Func("summed")
    summed[x, y] = 0
    summed[x, 3] += x + at.x
    pure = Variable("x", is_reduction=False, source=Accessor("summed", 0, DimensionList.DIMS, 1))
    funcs = (ScheduledFunc("summed", ByIndex(0)),)
    stages = (StageSchedule("summed", 0, (Parallel("x"),)),)
    module: dict[str, object] = {}
    exec(print_python(Schedule("summed", funcs, (pure,), stages)), module)
    names, apply = module["loop_names"], module["apply_schedule"]
    assert callable(names) and callable(apply)
    assert names(summed) == ["x", "y"]
    assert names(summed, 0) == ["at$x", "x"]
    apply(hl.Pipeline([summed]), hl.get_host_target())
    values = hl.Buffer(hl.Int(32), [8, 4])
    summed.realize(values)
    assert [values[column, 3] for column in range(8)] == [3 * column + 3 for column in range(8)]
