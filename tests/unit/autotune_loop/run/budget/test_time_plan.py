"""What a run has time for, from what its timings really take: on a fake clock."""

from __future__ import annotations

import math

import pytest

from halide_autotune.autotune_loop.run.budget.run_budget import RunBudget
from halide_autotune.autotune_loop.run.budget.time_plan import TimePlan
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measurement import Measurement
from tests.fake_time import FakeTime

BATCH_SIZE = 32


def plan(budget_s: float | None, clock: Clock = Clock.SIMULATED, at_once: int = 1) -> TimePlan:
    return TimePlan(RunBudget(budget_s, 0.0), clock, at_once, BATCH_SIZE)


def time_schedules(made: TimePlan, count: int, held_s: float, clock: Clock = Clock.SIMULATED) -> None:
    """A batch of so many, each of which held the device for so long."""
    made.begin_batch(count)
    for _ in range(count):
        made.add_timing(Measurement("blur", "board", clock, (1e-4, 1e-4), "precision", True), held_s)
    made.end_batch()


def test_without_a_budget_batches_are_whole_and_follow_each_other(now: FakeTime) -> None:
    made = plan(None)
    time_schedules(made, 4, 90.0)
    now.now_s = 1e6
    assert made.affordable() == BATCH_SIZE and made.has_time_for_a_batch()
    assert not made.is_enough(100, in_service=True) and not made.is_overdue(100)
    assert made.play_off_room(1, with_incumbent=False) is not None
    assert made.batch_deadline.left_s == math.inf
    assert made.has_time_to_learn()


def test_where_few_are_close_more_are_timed(now: FakeTime) -> None:
    made = plan(300.0, Clock.WALL)
    time_schedules(made, 4, 2.0, Clock.WALL)
    now.now_s = 200.0
    many = made.affordable()
    made.contenders = lambda: 2
    assert made.affordable() > many + 10


def test_the_first_batch_is_as_large_as_the_reference_says(now: FakeTime) -> None:
    """A reference that held the device for 20 s is written and timed: a schedule takes half of that."""
    made = plan(60.0)
    made.reserve.add_reference(20.0)
    now.now_s = 20.0
    assert made.affordable() == 4
    assert plan(60.0).affordable() == BATCH_SIZE, "nothing is known yet"


def test_a_batch_is_as_large_as_timings_have_shown(now: FakeTime) -> None:
    made = plan(300.0)
    time_schedules(made, 4, 5.0)
    now.now_s = 200.0
    # Of 100 s, the play-off takes four more timings and the link.
    assert made.affordable() == pytest.approx((100 - 4 * 5 - 3) / 5, abs=1)
    several = plan(300.0, at_once=2)
    time_schedules(several, 4, 5.0)
    assert several.affordable() > 2 * made.affordable() - 2


def test_a_batch_under_way_comes_first(now: FakeTime) -> None:
    made = plan(200.0)
    time_schedules(made, 4, 5.0)
    now.now_s = 100.0
    free = made.affordable()
    made.begin_batch(10)
    assert made.affordable() == free - 10
    made.add_timing(Measurement("blur", "board", Clock.SIMULATED, (1e-4,), "precision", True), 5.0)
    assert made.affordable() == free - 9


def test_the_play_off_is_planned_for_the_default_and_the_fastest(now: FakeTime) -> None:
    """Slow schedules take no part, however many there are; a slow default does."""
    made, slow, plain = plan(600.0, Clock.WALL), plan(600.0, Clock.WALL), plan(600.0, Clock.WALL)
    for each, default_s, others_s in ((made, 1.0, 9.0), (slow, 9.0, 1.0), (plain, 1.0, 1.0)):
        times_s = (default_s, 1.0, 1.0, *[others_s] * 3)
        each.begin_batch(len(times_s))
        for number, held_s in enumerate(times_s):
            timing = Measurement(f"blur_{number}", "board", Clock.WALL, (1e-4, 1e-4), "precision", True)
            each.add_timing(timing, held_s, defaults={"blur_0"})
        each.end_batch()
    needed_s = [each.reserve.needed_s(1, 0) for each in (made, slow, plain)]
    assert needed_s[0] == needed_s[2] == pytest.approx(needed_s[1] - 8 * 8.0)


def test_no_batch_begins_that_could_not_be_timed(now: FakeTime) -> None:
    made = plan(100.0)
    time_schedules(made, 4, 20.0)
    now.now_s = 10.0
    assert made.affordable() == 0 and not made.has_time_for_a_batch()
    assert not made.is_time_for_play_offs
    time_schedules(quick := plan(100.0), 4, 0.2)
    assert quick.has_time_for_a_batch()


def test_the_first_batch_goes_on_until_there_is_a_result(now: FakeTime) -> None:
    made = plan(60.0)
    made.reserve.add_reference(40.0)
    now.now_s = 50.0
    assert made.is_time_for_play_offs
    assert [made.is_enough(measured, in_service=True) for measured in (0, 1, 3, 4)] == [False, False, False, True]
    assert made.is_enough(0, in_service=False), "nothing more comes"
    assert not made.is_overdue(3), "the budget is not spent"
    now.now_s = 61.0
    assert [made.is_enough(measured, in_service=True) for measured in (0, 1)] == [False, True]
    assert [made.is_overdue(measured) for measured in (0, 1)] == [False, True]


def test_later_batches_end_at_once(now: FakeTime) -> None:
    made = plan(60.0)
    time_schedules(made, 4, 5.0)
    now.now_s = 30.0
    assert not made.is_enough(3, in_service=True)
    now.now_s = 50.0
    assert made.is_enough(0, in_service=True)
    assert not made.is_overdue(0), "what is under way may still end"
    now.now_s = 60.5
    assert made.is_overdue(0)


def test_a_play_off_ends_with_the_run_or_is_not_held(now: FakeTime) -> None:
    made = plan(100.0)
    time_schedules(made, 4, 5.0)
    now.now_s = 70.0
    in_time = made.play_off_room(1, with_incumbent=False)
    assert in_time is not None and (in_time.deadline.at_s, in_time.contenders) == (100.0, 4)
    now.now_s = 95.0
    late = made.play_off_room(1, with_incumbent=False)
    assert late is not None and late.deadline.at_s == 100.0
    assert late.first_look_by.at_s == made.budget.end.at_s
    now.now_s = 103.0
    fewer = made.play_off_room(1, with_incumbent=False)
    assert fewer is not None and fewer.contenders == 2, "what is left is enough for the best and the default"
    assert made.play_off_room(2, with_incumbent=False) is None, "two share what is left"
    now.now_s = 110.0
    assert made.play_off_room(1, with_incumbent=False) is None


def test_batches_are_built_before_the_play_offs_begin(now: FakeTime) -> None:
    made = plan(60.0, Clock.WALL)
    now.now_s = 40.0
    assert made.batch_deadline.at_s == 60.0 - 0.25 * 20.0, "without a first batch there is nothing to decide"
    now.now_s = 0.0
    time_schedules(made, 16, 0.25, Clock.WALL)
    assert made.batch_deadline.at_s == pytest.approx(60.0 - 3.0 - 28 * 0.25 - 6.0)


def run_of(budget_s: float, link_s: float, timing_s: float, batch_s: float, now: FakeTime) -> float:
    """Rounds, each of which is built and then timed, until there is time for no more; when the play-off begins."""
    made = plan(budget_s, Clock.WALL)
    while made.batches_done == 0 or made.has_time_for_a_batch():
        count = made.affordable()
        now.now_s += batch_s
        made.reserve.add_link(link_s)
        made.begin_batch(count)
        for done in range(count):
            if made.is_enough(done, in_service=True):
                break
            now.now_s += timing_s
            made.add_timing(Measurement("blur", "board", Clock.WALL, (timing_s,), "precision", True), timing_s)
        made.end_batch()
    return now.now_s


@pytest.mark.parametrize("budget_s", [30.0, 45.0, 60.0])
def test_a_budget_is_used_to_its_end(now: FakeTime, budget_s: float) -> None:
    """The play-off is left 28 timings, a tenth for a close choice and its start; all else goes to schedules."""
    began_s = run_of(budget_s, link_s=0.3, timing_s=0.2, batch_s=3.0, now=now)
    play_off_s = 0.5 + 0.3 + 28 * 0.2 + min(40 * 0.2, 0.1 * budget_s)
    assert budget_s - play_off_s - 0.2 <= began_s <= budget_s - play_off_s + 3.0


@pytest.mark.parametrize("budget_s", [5.0, 10.0, 15.0])
def test_a_short_run_ends_with_a_play_off(now: FakeTime, budget_s: float) -> None:
    """Its first batch takes what there is; the play-off may then exceed the budget, as far as a run may."""
    made = plan(budget_s, Clock.WALL)
    now.now_s = budget_s - 1.5
    made.reserve.add_link(0.2)
    time_schedules(made, 4, 0.1, Clock.WALL)
    room = made.play_off_room(1, with_incumbent=False)
    assert room is not None and room.contenders == 6
    assert room.first_look_by.at_s == made.budget.end.at_s


def test_the_last_training_ends_before_the_run_must(now: FakeTime) -> None:
    made = plan(100.0)
    made.reserve.add_training(8.0)
    now.now_s = 110.0
    assert made.has_time_to_learn()
    now.now_s = 115.0
    assert not made.has_time_to_learn()
