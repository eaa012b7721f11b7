"""What a runner counts is kept if it can be true; whatever else it says is one failure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.func_counts import Accesses, KernelCounts, count_accesses
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason
from tests.device_replies import COUNTED_FUNC, COUNTS
from tests.unit.devices.timing.test_machine_signs import ANYTHING, Board, session_on


def counted(told: dict[str, object], exit_code: int = 0) -> KernelCounts | MeasureFailure:
    return count_accesses(session_on(Board(told, exit_code=exit_code), Clock.SIMULATED), "batch", "f", None, 60.0)


def test_what_was_counted_is_told_by_func() -> None:
    board = Board(COUNTS)
    counts = count_accesses(session_on(board, Clock.SIMULATED), "batch", "f", "reference.raw", 60.0)
    assert isinstance(counts, KernelCounts)
    (blur,) = counts.funcs
    assert (blur.name, blur.within, blur.extents, blur.realized_points) == ("blur", "output", (32, 8), 256)
    assert blur.loaded == Accesses(96, 768, 1536) and blur.loaded.values_at_once == 8
    assert blur.stored.values_at_once == 8 and Accesses(0, 0, 0).values_at_once == 0
    assert "reference.raw" in board.arguments and board.arguments[-1] == "--count"


def test_what_is_loaded_for_no_func_is_left_out() -> None:
    counts = counted(COUNTS | {"funcs": [COUNTED_FUNC, COUNTED_FUNC | {"name": ""}]})
    assert isinstance(counts, KernelCounts) and [func.name for func in counts.funcs] == ["blur"]


@pytest.mark.parametrize(
    "change",
    [
        {"funcs": None},
        {"funcs": [COUNTED_FUNC | {"loaded": {"count": -1, "values": 0, "bytes": 0}}]},
        {"funcs": [COUNTED_FUNC | {"points": 0.5}]},
        {"funcs": [COUNTED_FUNC | {"name": "\x1b[2Jblur"}]},
        {"funcs": [COUNTED_FUNC | {"within": "f" * 201}]},
        {"funcs": [COUNTED_FUNC | {"extents": [1] * 9}]},
        {"funcs": [COUNTED_FUNC] * 10_001},
    ],
)
def test_a_report_that_cannot_be_true_is_a_failure(change: dict[str, object]) -> None:
    failure = counted(COUNTS | change)
    assert isinstance(failure, MeasureFailure) and failure.reason is MeasureFailureReason.BAD_REPORT
    assert "cannot be read" in failure.message


def test_a_run_that_fails_says_why() -> None:
    failure = counted({"event": "error", "kind": "threads", "message": "Parts run beside each other."}, exit_code=3)
    assert isinstance(failure, MeasureFailure) and "Parts run beside each other." in failure.message


@given(st.dictionaries(st.sampled_from(["funcs", "name", "loaded", "extents"]), ANYTHING | st.lists(ANYTHING)))
def test_whatever_is_said_is_counts_or_a_failure(change: dict[str, object]) -> None:
    for told in (COUNTS | change, COUNTS | {"funcs": [COUNTED_FUNC | change]}):
        counts = counted(told)
        if isinstance(counts, KernelCounts):
            assert all(func.name.isprintable() and func.loaded.count >= 0 for func in counts.funcs)
