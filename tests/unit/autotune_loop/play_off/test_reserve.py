"""What is kept of a budget for the play-offs."""

from __future__ import annotations

import math
import time

import pytest

from autotune_loop.deadline import Deadline
from autotune_loop.play_off.reserve import PlayOffReserve
from devices.device import Clock
from devices.timing.measurement import Measurement


def reserve(clock: Clock, *held_s: float) -> PlayOffReserve:
    """Of a run that has timed schedules whose calls took 0.75 s by its clock."""
    made = PlayOffReserve(clock)
    for one_s in held_s:
        made.add_timing(Measurement("blur", "board", clock, (0.25, 0.5), "precision", True), one_s)
    return made


def test_simulated_seconds_are_none_of_the_runs() -> None:
    """An emulator takes seconds for what it says takes microseconds; it does so once, whatever the turns."""
    once_s = reserve(Clock.SIMULATED, 9.0).needed_s(1, 0)
    assert 4 * 9.0 < once_s < 5 * 9.0 + 3.0
    assert reserve(Clock.SIMULATED, 9.0).needed_s(2, 1) > 2 * once_s


def test_a_turn_takes_as_long_as_the_slowest_calls_and_the_usual_process() -> None:
    quick_s = reserve(Clock.WALL, 0.8, 0.8, 0.8).needed_s(1, 0)
    assert 24 * 0.75 < quick_s < 24 * 1.0
    assert reserve(Clock.WALL, 0.8, 0.8, 99.0).needed_s(1, 0) == pytest.approx(quick_s), "one that waited is not usual"
    assert reserve(Clock.WALL, 1.75, 1.75, 1.75).needed_s(1, 0) > quick_s + 20


def test_a_training_that_is_under_way_is_waited_for() -> None:
    made = reserve(Clock.WALL, 0.8)
    before_s = made.needed_s(1, 0)
    made.add_training(5.0)
    made.add_training(2.0)
    assert made.needed_s(1, 0) == before_s + 2.0, "the first one takes longer than those to come"


def test_a_play_off_exceeds_a_spent_budget_by_what_it_needs_if_the_run_may() -> None:
    made = reserve(Clock.WALL, 0.8)
    needed_s = made.needed_s(1, 0)
    spent = Deadline(time.monotonic() - 1.0)
    given = made.deadline(spent, Deadline.after(4000.0), with_incumbent=False, play_offs=1)
    assert given is not None and needed_s - 5.0 < given.left_s <= needed_s
    longer = made.deadline(spent, Deadline.after(4000.0), with_incumbent=True, play_offs=1)
    assert longer is not None and longer.at_s > given.at_s + 1.0
    assert made.deadline(spent, Deadline.after(needed_s - 1.0), with_incumbent=False, play_offs=1) is None
    assert made.deadline(spent, Deadline.after(4000.0), with_incumbent=False, play_offs=1000) is None
    ample = Deadline.after(500.0)
    assert made.deadline(ample, Deadline.after(600.0), with_incumbent=False, play_offs=1) == ample
    endless = Deadline(math.inf)
    assert made.deadline(endless, endless, with_incumbent=False, play_offs=1) == endless


def test_schedules_that_are_timed_at_once_share_the_time() -> None:
    one, two = PlayOffReserve(Clock.SIMULATED), PlayOffReserve(Clock.SIMULATED, at_once=2)
    for made in (one, two):
        made.add_timing(Measurement("blur", "qemu", Clock.SIMULATED, (1e-3,), "precision", True), 10.0)
    assert two.timed_within(100.0) == 2 * one.timed_within(100.0) == 20
    assert one.needed_s(1, 0) - two.needed_s(1, 0) == 20.0


def test_one_slow_schedule_is_not_what_all_take() -> None:
    made = reserve(Clock.SIMULATED, 2.0, 2.0, 2.0, 14.0)
    assert made.timed_within(50.0) == 10
    assert made.needed_s(1, 0) < 4 * 14.0
    assert made.timed_within(-1.0) == 0
