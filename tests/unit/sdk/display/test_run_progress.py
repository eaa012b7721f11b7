"""What is known of a run, from its events."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.events import BatchDone, BestImproved, RunStarted, SampleFailed, SampleMeasured
from halide_autotune.sdk.display.run_progress import RunProgress, StageProgress
from tests.measured_candidates import measured as measured_candidate
from tests.unit.sdk.display.recorded_run import STARTED, StandingClock, measured, progress_after, run_events, started


def test_stages_standings_and_failures() -> None:
    progress = progress_after(run_events())
    assert progress.stages["search"] == StageProgress(1, 0, 2, 8, "")
    assert progress.stages["build"] == StageProgress(0, 0, 3, 3)
    # A schedule that failed on the device is through, too.
    assert progress.stages["measure"] == StageProgress(0, 0, 4, 4)
    assert progress.stages["play-off"].done == 1
    standing = progress.standings[0]
    assert (standing.default_ms, standing.best_ms, standing.best_sample) == (8.0, 4.0, "batch_0_0/1")
    assert standing.speed_up == 2.0
    assert progress.failures == {"search: timed out": 2, "measure: crashed": 1}
    assert progress.timed == 3
    assert progress.training is not None and not progress.training.accepted
    ((at_s, notice),) = progress.notices
    assert (at_s, notice.warning) == (2.0, True)


def test_the_record_of_a_batch() -> None:
    (record,) = progress_after(run_events()).batches
    assert (record.done.measured, record.done.failed, record.best_ms, record.median_ms) == (3, 1, 4.0, 8.0)
    assert record.duration_s == 16.0
    # Predicted 3, 1, 2 against 8, 4, 16: one of three ranks agrees.
    assert record.rank_correlation == pytest.approx(0.5)


def test_the_correlation_is_of_the_newest_batch_with_enough_predictions() -> None:
    progress = progress_after(run_events())
    assert progress.rank_correlation() == (0, pytest.approx(0.5))
    for event in (measured(1, 0, 5.0, 1.0, 1), measured(1, 1, 6.0, None, 2), measured(1, 2, 7.0, 2.0, 3)):
        progress.add(event)
    assert progress.rank_correlation() == (0, pytest.approx(0.5))
    progress.add(measured(1, 3, 8.0, 3.0, 4))
    assert progress.rank_correlation() == (1, pytest.approx(1.0))


def test_equal_predictions_have_no_correlation() -> None:
    progress = progress_after([measured(0, i, 1.0 + i, 2.0, i + 1) for i in range(4)])
    assert progress.rank_correlation() is None


def test_a_new_batch_starts_its_bar_again() -> None:
    progress = progress_after(run_events())
    progress.add(SampleFailed(1, 0, 0, "measure", "crashed", "It crashed."))
    assert progress.stages["measure"].round_index == 1
    assert progress.stages["measure"].done == 1


def timed_run(started: RunStarted, batches: int, batch_s: float) -> RunProgress:
    clock = StandingClock()
    progress = RunProgress(clock)
    progress.add(started)
    for index in range(batches):
        clock.now_s += batch_s
        progress.add(BatchDone(index, 0, 4, 0, {}))
    clock.now_s += 1.0
    return progress


def test_time_left_by_rounds() -> None:
    ten_rounds = started(rounds=10)
    assert timed_run(ten_rounds, 0, 1.0).time_left_s() is None
    assert timed_run(ten_rounds, 1, 20.0).time_left_s() == (179.0, False)
    assert timed_run(ten_rounds, 4, 20.0).time_left_s() == (119.0, False)
    # A resumed run begins with a later round.
    clock = StandingClock()
    progress = RunProgress(clock)
    progress.add(ten_rounds)
    clock.now_s += 20.0
    progress.add(BatchDone(7, 0, 4, 0, {}))
    assert progress.time_left_s() == (40.0, False)


def test_time_left_by_budget() -> None:
    assert timed_run(started(rounds=10, budget_s=90.0), 1, 20.0).time_left_s() == (69.0, True)
    assert timed_run(started(rounds=2, budget_s=90.0), 1, 20.0).time_left_s() == (19.0, False)
    assert timed_run(started(rounds=99, budget_s=20.0), 1, 30.0).time_left_s() == (0.0, True)


def test_the_rate() -> None:
    assert progress_after([STARTED]).samples_per_minute is None
    assert progress_after(run_events()[:9], step_s=2.0).samples_per_minute == pytest.approx(60 / 18)


def test_what_a_resumed_folder_holds_counts_for_the_best() -> None:
    rows = [
        measured_candidate(8.0, 0, 0, Origin.FULL_BEAM),
        measured_candidate(3.0, 1, 2),
        measured_candidate(9.0, 1, 3, Origin.FULL_BEAM),
    ]
    progress = progress_after([STARTED])
    progress.add_earlier(rows)
    progress.add(measured(2, 0, 5.0, 1.0, 1))
    standing = progress.standings[0]
    assert (standing.default_ms, standing.best_ms, standing.best_sample) == (8.0, 3.0, "batch_1_0/2")
    assert standing.best_at_s is None
    assert (progress.timed, progress.timed_before) == (1, 3)


def test_argument_sets_stand_apart() -> None:
    other = SampleMeasured(0, 1, 0, "full beam search", 2.0, 1.0, "wall", 1, 4)
    best = BestImproved(1, "batch_0_1/0", 2.0, 2.0, "wall", (1.8, 2.2))
    progress = progress_after([*run_events(), other, best])
    assert progress.standings[0].best_ms == 4.0
    assert progress.standings[1].best_ms == 2.0
    assert progress.standings[1].best_range_ms == (1.8, 2.2)


def test_one_lucky_timing_is_not_the_best() -> None:
    lucky = SampleMeasured(0, 0, 3, "random search", 0.5, 1.0, "emulated", 4, 4)
    assert progress_after([*run_events(), lucky]).standings[0].best_ms == 4.0
