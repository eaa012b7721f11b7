"""How many schedules a batch has, and how many of them each technique proposes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.candidate import (
    Candidate,
    Origin,
    SchedulePoint,
    SearchPoint,
    kernel_symbol,
)
from halide_autotune.autotune_loop.cost_model.dataset import MIN_UNIQUE_SCHEDULES
from halide_autotune.autotune_loop.events import SampleFailed
from halide_autotune.autotune_loop.search.known.run_populations import TimedSchedule
from halide_autotune.autotune_loop.search.plan import greedy_point
from halide_autotune.autotune_loop.search.pool import BatchInProgress
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measurement import Measurement
from tests.proposal_setting import NAME, WORK, Make, sampled

SAMPLING, SKETCHES, EVOLUTION, _, _ = TechniqueName


def test_before_anything_was_timed_most_are_sketches(make: Make) -> None:
    run = make()
    assert run.proposals.divide(BatchInProgress(0, 0), [], 9) == {SAMPLING: 2, SKETCHES: 7, EVOLUTION: 0}
    second = {SAMPLING: 0, SKETCHES: 8, EVOLUTION: 0}
    assert run.proposals.divide(WORK, [], 8) == second
    reference = TimedSchedule("reference", "reference/0", 1.0)
    assert run.proposals.divide(WORK, [reference], 8) == second, "it is no technique's"
    assert make("sketches,evolution").proposals.divide(BatchInProgress(0, 0), [], 8)[SKETCHES] == 8


@pytest.mark.parametrize(("count", "sampled"), [(8, 8), (12, 8), (24, 12)])
def test_what_is_recorded_to_learn_from_has_enough_samples_for_halides_model(
    count: int, sampled: int, make: Make
) -> None:
    proposals = make("sampling,sketches", only_records=True).proposals
    assert proposals.divide(BatchInProgress(0, 0), [], count) == {SAMPLING: sampled, SKETCHES: count - sampled}
    assert sampled >= MIN_UNIQUE_SCHEDULES


def test_where_no_search_succeeds_the_first_round_is_sketches(make: Make) -> None:
    proposals = make().proposals
    proposals.leave_out_search(0)
    assert proposals.techniques(0) == (SKETCHES, EVOLUTION)
    assert proposals.divide(WORK, [], 8) == {SAMPLING: 0, SKETCHES: 8, EVOLUTION: 0}


def test_sketches_that_were_not_asked_for_are_not_made(make: Make) -> None:
    assert make("sampling,evolution").proposals.divide(BatchInProgress(0, 0), [], 8) == {SAMPLING: 2, EVOLUTION: 6}
    assert make("evolution").proposals.divide(BatchInProgress(0, 0), [], 8) == {EVOLUTION: 8}


@pytest.mark.parametrize(
    ("reference_s", "expected", "first"),
    # The last two take 8 % and a fifth of the budget, or are as small as they may be.
    [(0.2, 25, 25), (4.0, 8, 16), (0.01, 29, 29), (9.0, 4, 12), (99.0, 4, 6)],
)
def test_batches_are_small_enough_for_many_generations_in_the_budget(
    make: Make, reference_s: float, expected: int, first: int
) -> None:
    """600 s for each task's 20 batches are 30 s each; nothing was built yet, so a build is taken for 1 s."""
    run = make(budget_s=1200.0)
    assert run.proposals.batch_size(0, 32, None) == 32, "nothing is known"
    reference = Measurement("f_reference_a0", "board", Clock.WALL, (0.01,), "precision", False)
    run.store.database.add_measurement(reference, "reference", reference_s)
    other = replace(reference, kernel="g_reference_a1")
    run.store.database.add_measurement(other, "reference", 0.5)
    assert run.proposals.batch_size(0, 32, 1200.0) == expected, "whatever the other pipeline takes"
    assert run.proposals.batch_size(0, 32, None) == first
    assert make().proposals.batch_size(0, 32, 1200.0) == 32, "without a budget there is time"


@pytest.mark.parametrize(("left_s", "expected"), [(300.0, 25), (100.0, 15), (50.0, 7), (5.0, 4)])
def test_towards_the_end_a_batch_is_what_can_be_built(make: Make, left_s: float, expected: int) -> None:
    """A build is taken for 1 s, and may take 15 % of the time left; fewer than four are no batch."""
    run = make(budget_s=1200.0)
    reference = Measurement("f_reference_a0", "board", Clock.WALL, (0.01,), "precision", False)
    run.store.database.add_measurement(reference, "reference", 0.2)
    assert run.proposals.batch_size(0, 32, left_s) == expected


def test_what_is_timed_at_once_counts_for_the_size_of_batches(make: Make) -> None:
    run = make(budget_s=1200.0, at_once=4)
    reference = Measurement("f_reference_a0", "qemu", Clock.SIMULATED, (0.01,), "repetitions", False)
    run.store.database.add_measurement(reference, "reference", 16.0)
    assert run.proposals.batch_size(0, 32, 1200.0) == 8, "as where one at a time takes 4 s"


def test_later_all_have_their_share(make: Make) -> None:
    run = make()
    shares = run.proposals.divide(WORK, sampled(run, 12), 12)
    assert list(shares) == [SAMPLING, SKETCHES, EVOLUTION] and sum(shares.values()) == 12
    assert all(shares.values())


def test_shares_follow_what_was_timed_and_what_failed(make: Make) -> None:
    run = make()
    timed = sampled(run)
    for index in range(30):
        good = index % 2 == 0
        origin = Origin.EVOLUTION if good else Origin.SKETCH
        symbol = kernel_symbol(NAME, 1, 0, index)
        run.store.database.add_candidate(Candidate(1, 0, index, symbol, SchedulePoint(origin), symbol, 0.0))
        if good:
            timed.append(TimedSchedule(symbol, f"batch_1_0/{index}", 1.0 / (index + 1)))
        else:
            failed = SampleFailed(1, 0, index, "build", "failed", "It does not compile.")
            run.store.database.add_failure(failed, symbol=symbol)
    shares = run.proposals.divide(WORK, timed, 12)
    assert shares[EVOLUTION] > 6 > shares[SKETCHES]


def test_a_sample_costs_as_many_searches_as_it_is_chosen_from(make: Make) -> None:
    def shares(pool_factor: float) -> dict[str, int]:
        run = make("sampling,sketches", pool_factor=pool_factor)
        timed = []
        for index, origin in enumerate([Origin.RANDOM, Origin.SKETCH] * 8):
            symbol = kernel_symbol(NAME, 0, 0, index)
            is_sample = origin is Origin.RANDOM
            weights = run.store.default_weights
            point = SearchPoint(origin, index, 1, 5, weights) if is_sample else SchedulePoint(origin)
            run.store.database.add_candidate(Candidate(0, 0, index, symbol, point, symbol, 0.1 if is_sample else 0.0))
            timed.append(TimedSchedule(symbol, f"batch_0_0/{index}", 1.0 + index % 5))
        return run.proposals.divide(WORK, timed, 12)

    assert shares(8.0)[SAMPLING] < shares(1.0)[SAMPLING]


def test_the_default_is_no_success_of_the_samples(make: Make) -> None:
    def shares(default_ms: float) -> dict[str, int]:
        run = make()
        timed = sampled(run)
        symbol = kernel_symbol(NAME, 0, 0, 99)
        default = greedy_point(3, run.store.default_weights)
        run.store.database.add_candidate(Candidate(0, 0, 99, symbol, default, symbol, 1.0))
        timed.append(TimedSchedule(symbol, "batch_0_0/99", default_ms))
        return run.proposals.divide(WORK, timed, 12)

    assert shares(0.001) == shares(1000.0)


def test_a_dear_build_counts_less_where_timing_takes_longer(make: Make) -> None:
    def shares(timing_s: float) -> dict[str, int]:
        run = make()
        timed = sampled(run)
        for index, origin in enumerate([Origin.SKETCH, Origin.EVOLUTION] * 8):
            symbol = kernel_symbol(NAME, 1, 0, index)
            run.store.database.add_candidate(Candidate(1, 0, index, symbol, SchedulePoint(origin), symbol, 0.0))
            run.store.database.add_build(symbol, 4.0 if origin is Origin.EVOLUTION else 1.0, 1000)
            measurement = Measurement(symbol, "board", Clock.WALL, (0.001,), "time", True)
            run.store.database.add_measurement(measurement, "sample", timing_s)
            timed.append(TimedSchedule(symbol, f"batch_1_0/{index}", 1.0 / (index + 1)))
        return run.proposals.divide(WORK, timed, 12)

    assert shares(0.01)[EVOLUTION] < shares(40.0)[EVOLUTION]


def test_a_build_that_is_stopped_costs_what_it_was_given(make: Make) -> None:
    def shares(reason: str) -> dict[str, int]:
        run = make()
        timed = sampled(run)
        for index, origin in enumerate([Origin.SKETCH, Origin.EVOLUTION] * 8):
            symbol = kernel_symbol(NAME, 1, 0, index)
            run.store.database.add_candidate(Candidate(1, 0, index, symbol, SchedulePoint(origin), symbol, 0.0))
            if origin is Origin.EVOLUTION and index % 4 == 1:
                failed = SampleFailed(1, 0, index, "build", reason, "No code.")
                run.store.database.add_failure(failed, symbol=symbol)
            else:
                run.store.database.add_build(symbol, 1.0, 1000)
                timed.append(TimedSchedule(symbol, f"batch_1_0/{index}", 1.0 / (index + 1)))
        return run.proposals.divide(WORK, timed, 12)

    assert shares("timed out")[EVOLUTION] < shares("failed")[EVOLUTION]


def test_a_search_that_gave_nothing_in_all_its_time_counts_as_a_failure(make: Make) -> None:
    def shares(search_s: float | None) -> dict[str, int]:
        run = make()
        timed = []
        for index, origin in enumerate([Origin.SKETCH, Origin.EVOLUTION] * 8):
            symbol = kernel_symbol(NAME, 1, 0, index)
            run.store.database.add_candidate(Candidate(1, 0, index, symbol, SchedulePoint(origin), symbol, 0.0))
            run.store.database.add_build(symbol, 1.0, 1000)
            timed.append(TimedSchedule(symbol, f"batch_1_0/{index}", 1.0 / (index + 1)))
        run.store.database.add_batch(1, 0, {} if search_s is None else {"search": search_s})
        run.store.database.add_batch(1, 1, {"search": 50.0})
        return run.proposals.divide(BatchInProgress(2, 0), timed, 12)

    assert shares(None)[SAMPLING] > 0, "it was never tried"
    assert shares(50.0)[SAMPLING] == 0
    assert shares(0.001) == shares(None), "nothing was searched"


def test_what_is_being_timed_meanwhile_is_left_out_as_that_differs_between_equal_runs(make: Make) -> None:
    run = make()
    timed = sampled(run)
    before = run.proposals.divide(BatchInProgress(2, 0), timed, 12), run.proposals.population(WORK, timed)
    for index in range(8):
        symbol = kernel_symbol(NAME, 1, 0, index)
        point = SchedulePoint(Origin.EVOLUTION, (), ("tile",))
        run.store.database.add_candidate(Candidate(1, 0, index, symbol, point, symbol, 0.0))
        if index % 2:
            measurement = Measurement(symbol, "board", Clock.WALL, (0.0001,), "time", True)
            run.store.database.add_measurement(measurement, "sample", 0.1)
        else:
            run.store.database.add_failure(SampleFailed(1, 0, index, "measure", "crashed", "No."), symbol=symbol)
    assert (run.proposals.divide(BatchInProgress(2, 0), timed, 12), run.proposals.population(WORK, timed)) == before
