"""What the database gives back of a run's timings: on one scale, and as races have settled them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import SampleFailed
from halide_autotune.autotune_loop.store.run_database import NOT_DONE, RunDatabase
from tests.contract.writing_process import candidate, measurement, symbol


@pytest.fixture
def database(tmp_path: Path) -> Iterator[RunDatabase]:
    made = RunDatabase(tmp_path / "tuning.db")
    for index in range(2):
        made.add_candidate(candidate(tmp_path, 0, index))
    yield made
    made.close()


def test_the_times_of_a_slower_board_are_on_the_runs_scale(database: RunDatabase) -> None:
    database.add_measurement(measurement(symbol(0, 0), 2e-3), "sample", 0.5)
    database.add_measurement(replace(measurement(symbol(0, 1), 6e-3), factor=0.5), "sample", 0.5)
    assert [one.median_ms for one in database.measured()] == pytest.approx([2.0, 3.0])


def test_a_leader_has_the_mean_of_its_race_and_not_its_lucky_first_time(database: RunDatabase) -> None:
    database.add_measurement(measurement(symbol(0, 0), 1e-3), "sample", 0.5)
    for median_s in (2e-3, 8e-3):
        database.add_measurement(measurement(symbol(0, 0), median_s), "race", 0.5)
    database.add_measurement(measurement(symbol(0, 1), 3e-3), "sample", 0.5)
    raced, other = database.measured()
    assert raced.median_ms == pytest.approx(4.0) and raced.processes == 2
    assert other.median_ms == pytest.approx(3.0) and other.processes == 1


def test_what_was_timed_once_more_has_the_mean_of_that_alone(database: RunDatabase) -> None:
    for purpose, median_s in (("sample", 1e-3), ("race", 2e-3), ("confirmation", 3e-3), ("confirmation", 12e-3)):
        database.add_measurement(measurement(symbol(0, 0), median_s), purpose, 0.5)
    (one,) = database.measured()
    assert one.median_ms == pytest.approx(6.0) and one.processes == 2 and one.is_timed_anew


def test_times_of_a_play_off_are_no_samples(database: RunDatabase) -> None:
    database.add_measurement(measurement(symbol(0, 0), 1e-3), "sample", 0.5)
    database.add_measurement(measurement(symbol(0, 0), 5e-3), "play-off", 0.5)
    assert [one.median_ms for one in database.measured()] == pytest.approx([1.0])


def test_what_was_left_undone_counts_once_and_not_when_it_is_done(database: RunDatabase) -> None:
    def left(name: str | None) -> None:
        database.add_failure(SampleFailed(0, 0, None, "interrupted", NOT_DONE, "The run ended."), symbol=name)

    for name in (symbol(0, 0), symbol(0, 0), symbol(0, 1), symbol(0, 1), symbol(0, 2), None, None):
        left(name)
    assert database.not_done_count() == 5, "three schedules, and two searches"
    database.add_measurement(measurement(symbol(0, 0), 1e-3), "sample", 0.5)
    database.add_failure(SampleFailed(0, 0, 1, "build", "timed out", "It did not end."), symbol=symbol(0, 1))
    assert database.not_done_count() == 3
    assert database.failure_counts() == {"build: timed out": 1}
