"""What a runner says of its kernel's Funcs is kept if it can be true; whatever else it says is one failure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.func_times import FuncTimes, time_funcs
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason
from tests.unit.devices.timing.test_machine_signs import ANYTHING, Board, session_on

BLUR: dict[str, object] = {"name": "blur", "call_s": 1e-3, "threads": 1.9, "peak_bytes": 4096, "stack_bytes": 0}
OUTPUT: dict[str, object] = {"name": "output", "call_s": 3e-3, "threads": 2.0, "peak_bytes": 0, "stack_bytes": 64}
TOLD: dict[str, object] = {"event": "funcs", "calls": 250, "call_s": 4e-3, "looks": 900, "funcs": [BLUR, OUTPUT]}


def timed(told: dict[str, object], exit_code: int = 0) -> FuncTimes | MeasureFailure:
    return time_funcs(session_on(Board(told, exit_code=exit_code), Clock.WALL), "batch", "f", None, 60.0)


def test_the_slowest_func_comes_first() -> None:
    board = Board(TOLD)
    times = time_funcs(session_on(board, Clock.WALL), "batch", "f", "reference.raw", 60.0)
    assert isinstance(times, FuncTimes)
    assert (times.call_s, times.looks, [func.name for func in times.funcs]) == (4e-3, 900, ["output", "blur"])
    assert times.funcs[1].peak_bytes == 4096 and times.funcs[0].threads == 2.0
    assert "reference.raw" in board.arguments and board.arguments[-2:] == ["--by-func", "1.0"]


@pytest.mark.parametrize(
    "change",
    [
        {"call_s": -1.0},
        {"call_s": float("nan")},
        {"call_s": 1e300},
        {"looks": "many"},
        {"funcs": None},
        {"funcs": [BLUR | {"name": ""}]},
        {"funcs": [BLUR | {"name": "\x1b[2Jblur"}]},
        {"funcs": [BLUR | {"name": "f" * 201}]},
        {"funcs": [BLUR | {"call_s": None}]},
        {"funcs": [BLUR | {"peak_bytes": -1}]},
        {"funcs": [BLUR | {"threads": float("inf")}]},
        {"funcs": [BLUR] * 10_001},
    ],
)
def test_a_report_that_cannot_be_true_is_a_failure(change: dict[str, object]) -> None:
    failure = timed(TOLD | change)
    assert isinstance(failure, MeasureFailure) and failure.reason is MeasureFailureReason.BAD_REPORT
    assert "no usable times of Funcs" in failure.message


def test_calls_that_the_profiler_missed_count_for_every_func() -> None:
    times = timed(TOLD | {"call_s": 8e-3})
    assert isinstance(times, FuncTimes) and [func.time_s for func in times.funcs] == [6e-3, 2e-3]
    failure = timed(TOLD | {"looks": 0, "funcs": [BLUR | {"call_s": 0}]})
    assert isinstance(failure, MeasureFailure) and "too short to be seen" in failure.message


def test_a_run_that_fails_says_why() -> None:
    failure = timed({"event": "error", "kind": "usage", "message": "--by-func needs kernels."}, exit_code=2)
    assert isinstance(failure, MeasureFailure) and "--by-func needs kernels." in failure.message


@given(st.dictionaries(st.sampled_from(["call_s", "looks", "funcs"]), ANYTHING | st.lists(ANYTHING)))
def test_whatever_is_said_is_times_or_a_failure(change: dict[str, object]) -> None:
    times = timed(TOLD | change)
    if isinstance(times, FuncTimes):
        assert times.call_s >= 0 and all(func.name.isprintable() for func in times.funcs)
