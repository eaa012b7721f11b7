"""Times and counts of a schedule are put together by Func; what is missing is said."""

from __future__ import annotations

from halide_autotune.autotune_loop.explain.explain_schedules import explained_schedule
from halide_autotune.devices.timing.func_counts import KernelCounts
from halide_autotune.devices.timing.func_times import FuncTime, FuncTimes
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason
from halide_autotune.targets.pipeline.shape import PipelineShape
from tests.drafted_pipelines import func, read
from tests.explained_schedules import counts

SHAPE = PipelineShape(32, (func("blur", (102, 10)), func("output", (100, 10), read("blur", ("x", 3), ("y", 1)))))
OUTPUT, BLUR = counts("output", tasks=10), counts("blur", within="output", pieces=10, points=2040)
COUNTS = KernelCounts("f", "pi", (OUTPUT, BLUR), 3000)
WAITING = FuncTime("waiting for parallel tasks to finish", 0.5e-3, 0.5, 0, 0)
TIMES = FuncTimes(
    "f", "pi", 4e-3, 900, (FuncTime("blur", 2.5e-3, 3.9, 64, 0), FuncTime("output", 1e-3, 4.0, 0, 0), WAITING)
)
FAILURE = MeasureFailure("f", "pi", MeasureFailureReason.TIMED_OUT, "It took over 60 s.", "")


def test_the_slowest_func_comes_first_with_what_was_counted_of_it() -> None:
    one = explained_schedule("tuned", TIMES, COUNTS, SHAPE)
    assert [each.name for each in one.funcs] == ["blur", "output", WAITING.name] and one.call_s == 4e-3
    blur = one.by_name["blur"]
    assert blur.counts == BLUR and blur.needed_points == 1020 and blur.times_computed == 2.0
    assert one.by_name["output"].is_output and not blur.is_output
    assert one.busy_cores == (2.5 * 3.9 + 4.0 + 0.25) / 4
    assert one.missing == () and one.argument_bytes == 3000 and one.loaded_bytes == 18_000


def test_what_is_missing_is_said_and_the_rest_is_told() -> None:
    timed = explained_schedule("tuned", TIMES, FAILURE, SHAPE)
    assert timed.missing == ("its loads and stores are not counted: It took over 60 s.",)
    assert timed.funcs[0].counts is None and timed.operations is None and timed.call_s == 4e-3
    counted = explained_schedule("tuned", FAILURE, COUNTS, None)
    assert counted.missing == ("its Funcs are not timed: It took over 60 s.",)
    assert counted.call_s is None and counted.busy_cores is None and counted.funcs[0].times_computed is None


def test_a_clock_without_times_is_nothing_that_is_missing() -> None:
    one = explained_schedule("tuned", None, COUNTS, SHAPE)
    assert one.missing == () and [each.name for each in one.funcs] == ["output", "blur"]
