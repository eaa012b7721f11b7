"""What is kept of a budget for the play-offs."""

from __future__ import annotations

import math

import pytest

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.play_off.reserve import PlayOffReserve
from halide_autotune.devices.device import Clock
from tests.fake_time import FakeTime


def reserve(clock: Clock, *held_s: float, budget_s: float = math.inf) -> PlayOffReserve:
    """Of a run whose timings have held their devices for so long."""
    made = PlayOffReserve(clock, budget_s=budget_s)
    for one_s in held_s:
        made.add_timing(one_s)
    return made


def test_on_a_simulated_clock_each_contender_is_timed_once() -> None:
    once_s = reserve(Clock.SIMULATED, 9.0).needed_s(1, 0)
    assert 4 * 9.0 < once_s < 5 * 9.0 + 3.0
    assert reserve(Clock.SIMULATED, 9.0).needed_s(2, 1) > 2 * once_s


def test_a_turn_takes_what_turns_usually_take_in_this_run() -> None:
    """Two turns of six that choose, 40 timings of those that are close, and eight turns of two that decide."""
    made = reserve(Clock.WALL, 0.8, 0.8, 0.8)
    made.add_link(0.2)
    assert made.needed_s(1, 0) == pytest.approx(0.5 + 0.2 + 68 * 0.8)
    mixed = reserve(Clock.WALL, 0.2, 0.4, 0.3, 9.0)
    assert mixed.needed_s(1, 0) == pytest.approx(3.0 + 68 * 0.25), "slow schedules take no part"


def test_a_slow_default_takes_its_own_time_in_the_turns_that_decide() -> None:
    made = reserve(Clock.WALL, 0.2, 0.2, 0.2)
    made.add_timing(5.0, is_default=True)
    assert made.needed_s(1, 0) == pytest.approx(3.0 + 60 * 0.2 + 8 * 5.0)
    made.add_timing(1.0, is_default=True)
    assert made.needed_s(1, 0) == pytest.approx(3.0 + 60 * 0.2 + 8 * 5.0), "of several tasks the slowest"
    simulated = reserve(Clock.SIMULATED, 2.0, 2.0, 2.0)
    simulated.add_timing(9.0, is_default=True)
    assert simulated.needed_s(1, 0) == pytest.approx(3.0 + 4 * 9.0)


def test_a_close_choice_takes_a_tenth_of_a_budget_at_most() -> None:
    assert reserve(Clock.WALL, 0.8, budget_s=60.0).needed_s(1, 0) == pytest.approx(3.0 + 28 * 0.8 + 6.0)
    assert reserve(Clock.WALL, 0.1, budget_s=60.0).needed_s(1, 0) == pytest.approx(3.0 + 68 * 0.1)


def test_where_few_are_close_the_choice_is_short() -> None:
    made = reserve(Clock.WALL, 0.8)
    assert made.needed_s(1, 0, 3) == pytest.approx(3.0 + (2 * 3 + 40 + 16) * 0.8)
    assert made.needed_s(1, 0, 2) == pytest.approx(3.0 + (2 + 16) * 0.8), "nothing is to be chosen"
    assert made.needed_s(1, 0, 1) == made.needed_s(1, 0, 2), "it is judged, too"
    assert made.needed_s(1, 0, 60) == made.needed_s(1, 0)
    simulated = reserve(Clock.SIMULATED, 9.0)
    assert simulated.needed_s(1, 0, 60) == simulated.needed_s(1, 0) > simulated.needed_s(1, 0, 2)


def test_one_timing_that_had_to_wait_is_not_what_turns_take() -> None:
    usual_s = reserve(Clock.WALL, *[0.3] * 9).needed_s(1, 0)
    assert reserve(Clock.WALL, *[0.3] * 8, 99.0).needed_s(1, 0) == pytest.approx(usual_s)


def test_linking_is_as_slow_as_it_was_seen_to_be() -> None:
    made = reserve(Clock.WALL, 0.2)
    unknown_s = made.needed_s(1, 0)
    made.add_link(0.3)
    made.add_link(0.1)
    assert made.needed_s(1, 0) == pytest.approx(unknown_s - 2.5 + 0.3)


def test_a_training_that_is_under_way_is_waited_for() -> None:
    made = reserve(Clock.WALL, 0.8)
    before_s = made.needed_s(1, 0)
    made.add_training(5.0)
    made.add_training(2.0)
    assert made.needed_s(1, 0) == before_s + 2.0, "the first one takes longer than those to come"


def test_the_first_look_may_come_after_the_budget_is_spent(now: FakeTime) -> None:
    made = reserve(Clock.WALL, 0.8, budget_s=0.0)
    needed_s = made.needed_s(1, 0)
    spent = Deadline(now.now_s - 1.0)
    given = made.room(spent, Deadline.after(4000.0), with_incumbent=False, play_offs=1)
    assert given is not None and (given.contenders, given.deadline) == (6, spent)
    assert 3000.0 < given.first_look_by.left_s <= 4000.0
    shared = made.room(spent, Deadline.after(400.0), with_incumbent=True, play_offs=4)
    assert shared is not None and 90.0 < shared.first_look_by.left_s <= 100.0
    tight = Deadline.after(needed_s - 1.0)
    fewer = made.room(spent, tight, with_incumbent=False, play_offs=1)
    assert fewer is not None and fewer.contenders == 5 and fewer.first_look_by.at_s <= tight.at_s + 0.5
    assert made.room(spent, Deadline.after(18 * 0.8), with_incumbent=False, play_offs=1) is None
    assert made.room(spent, Deadline.after(4000.0), with_incumbent=False, play_offs=1000) is None
    ample = Deadline.after(500.0)
    given = made.room(ample, Deadline.after(600.0), with_incumbent=False, play_offs=1)
    assert given is not None and given.deadline == ample
    shared = made.room(ample, Deadline.after(600.0), with_incumbent=False, play_offs=4)
    assert shared is not None and 100.0 < shared.deadline.left_s <= 125.0, "the others have the rest"
    endless = Deadline(math.inf)
    given = made.room(endless, endless, with_incumbent=False, play_offs=1)
    assert given is not None and given.deadline == endless


def test_schedules_that_are_timed_at_once_share_the_time() -> None:
    one, two = PlayOffReserve(Clock.SIMULATED), PlayOffReserve(Clock.SIMULATED, at_once=2)
    for made in (one, two):
        made.add_timing(10.0)
    assert two.timed_within(100.0) == 2 * one.timed_within(100.0) == 20
    assert one.needed_s(1, 0) - two.needed_s(1, 0) == 20.0


def test_one_slow_schedule_is_not_what_all_take() -> None:
    made = reserve(Clock.SIMULATED, 2.0, 2.0, 2.0, 14.0)
    assert made.timed_within(50.0) == 10
    assert made.needed_s(1, 0) == pytest.approx(3.0 + 4 * 2.0)
    assert made.timed_within(-1.0) == 0
