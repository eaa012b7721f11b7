"""Of what a run has published several times the newest figures are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.store.published import Published, ScheduleTime, newest_published, read_published
from halide_autotune.autotune_loop.store.run_store import RunStore
from tests.contract.writing_process import HEADER, RECORD, candidate, measurement


def published(message: str, median_ms: float) -> Published:
    time = ScheduleTime(median_ms, 0.0)
    return Published("batch_0_0/0", "blur_r0_a0_s0", confirmed=True, reason="faster", message=message, tuned=time)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    yield made
    made.close()


def test_the_newest_verdict_of_a_header_is_read(store: RunStore) -> None:
    database = store.folder / "tuning.db"
    for message, sha256 in (("first", "aa"), ("second", "aa"), ("third", "bb"), ("last", "bb")):
        store.database.add_published(0, sha256, published(message, 1.0))
    with closing(sqlite3.connect(database)) as connection:
        older, newer = (read_published(connection, database, 0, sha256) for sha256 in ("aa", "bb"))
        assert older is not None and older.message == "second"
        assert newer is not None and newer.message == "last"
        newest = newest_published(connection, database, 0)
        assert newest is not None and newest[0] == "bb" and newest[1].message == "last"


def test_a_report_tells_the_newest_verdict(store: RunStore) -> None:
    made = candidate(store.candidate_folder(0, 0, 0), 0, 0)
    store.database.add_candidate(made)
    store.database.add_measurement(measurement(made.symbol, 1e-3), "sample", 0.5)
    header = store.work / "emitted.schedule.h"
    for message in ("not yet", "it wins"):
        header.write_text(HEADER)
        store.publish(0, header, published(message, 1.0), "wall")
    store.close()
    assert read_recorded_run(store.folder).headers[0].published.message == "it wins"
