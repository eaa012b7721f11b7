"""The end of a run: by its user, or by its budget; what is under way is killed until the run is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.run.budget.ending import RunEnding
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.process_state import PATIENCE_S

NEVER = Deadline.after(None)


def killer(wanted: int) -> tuple[Callable[[], None], threading.Event]:
    """What kills, and whether it was called so often."""
    calls: list[int] = []
    enough = threading.Event()

    def kill() -> None:
        calls.append(1)
        if len(calls) >= wanted:
            enough.set()

    return kill, enough


@pytest.mark.parametrize("who", ["user", "budget"])
def test_what_is_under_way_is_killed_again_and_again(who: str) -> None:
    stop = StopSignal()
    kill, killed = killer(3)
    ending = RunEnding(stop, Deadline(time.monotonic() - 1.0) if who == "budget" else NEVER, kill)
    with ending.watched():
        if who == "user":
            stop.set()
        assert killed.wait(PATIENCE_S)
        assert ending.has_come()
        assert ending.signal.wait(PATIENCE_S)
    assert stop.is_set() is (who == "user"), "a budget that is over is no interrupt"


def test_a_run_that_ends_by_itself_is_not_killed() -> None:
    kill, killed = killer(1)
    ending = RunEnding(StopSignal(), NEVER, kill)
    with ending.watched():
        assert not ending.has_come()
    assert not killed.is_set() and not ending.signal.is_set()


def test_a_stop_counts_before_the_watch_sees_it() -> None:
    stop = StopSignal()
    ending = RunEnding(stop, NEVER, lambda: None)
    stop.set()
    assert ending.has_come()
