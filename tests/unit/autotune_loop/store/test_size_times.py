"""What each schedule took at each size is on record, in a table of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.candidate import Measured
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.devices.timing.measurement_at_sizes import over_sizes
from tests.contract.writing_process import candidate, measurement, symbol

SYMBOL = symbol(0, 0)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[RunDatabase]:
    with closing(RunDatabase(tmp_path / "tuning.db")) as made:
        made.add_candidate(candidate(tmp_path, 0, 0))
        yield made


def at_sizes(large_s: float, small_s: float) -> Measurement:
    return over_sizes({"large": measurement(SYMBOL, large_s), "small": measurement(SYMBOL, small_s)})


def test_a_run_reads_them_again(database: RunDatabase) -> None:
    database.add_measurement(at_sizes(16e-3, 1e-3), "sample", 0.1)
    (one,) = database.measured()
    assert one.median_ms == pytest.approx(4.0)
    assert one.by_size_ms == pytest.approx({"large": 16.0, "small": 1.0})
    assert one.by_size_ms == pytest.approx(Measured.of(one.candidate, at_sizes(16e-3, 1e-3), None).by_size_ms)


def test_of_a_leader_the_race_counts(database: RunDatabase) -> None:
    for purpose, large_s in (("sample", 1e-3), ("race", 4e-3), ("race", 16e-3), ("play-off", 1.0)):
        database.add_measurement(at_sizes(large_s, 1e-3), purpose, 0.1)
    (one,) = database.measured()
    assert one.by_size_ms == pytest.approx({"large": 8.0, "small": 1.0}) and one.processes == 2


def test_of_what_was_timed_once_more_that_counts(database: RunDatabase) -> None:
    for purpose, large_s in (("sample", 1e-3), ("race", 4e-3), ("confirmation", 9e-3)):
        database.add_measurement(at_sizes(large_s, 1e-3), purpose, 0.1)
    (one,) = database.measured()
    assert one.by_size_ms == pytest.approx({"large": 9.0, "small": 1.0}) and one.is_timed_anew


def test_a_run_at_one_size_has_no_such_table(database: RunDatabase, tmp_path: Path) -> None:
    database.add_measurement(measurement(SYMBOL, 1e-3), "sample", 0.1)
    (one,) = database.measured()
    assert one.by_size_ms == {}
    with closing(sqlite3.connect(tmp_path / "tuning.db")) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert "measurements" in names and "size_times" not in names
