"""Rows that are added together are on disk together."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.store.run_database import RunDatabase


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tuning.db"


@pytest.fixture
def database(path: Path) -> Iterator[RunDatabase]:
    with contextlib.closing(RunDatabase(path)) as opened:
        yield opened


def _on_disk(path: Path) -> int:
    """Rows that another process sees."""
    with contextlib.closing(sqlite3.connect(path)) as reader:
        return int(reader.execute("SELECT count(*) FROM builds").fetchone()[0])


def test_they_are_there_at_the_end_and_not_before(database: RunDatabase, path: Path) -> None:
    with database.one_commit():
        database.add_build("a", 1.0, 10)
        database.add_build("b", 1.0, 10)
        assert len(database.build_times_s()) == 2, "who adds them sees them"
        assert _on_disk(path) == 0
    assert _on_disk(path) == 2
    # SQLite waits for the disk at each commit.
    assert database._rows("PRAGMA synchronous") == [(2,)]


def test_an_error_in_between_keeps_what_was_added(database: RunDatabase, path: Path) -> None:
    with pytest.raises(ZeroDivisionError), database.one_commit():
        database.add_build("a", 1.0, 10)
        raise ZeroDivisionError
    assert _on_disk(path) == 1
    database.add_build("b", 1.0, 10)
    assert _on_disk(path) == 2


def test_what_other_threads_add_is_on_disk_when_their_call_returns(database: RunDatabase, path: Path) -> None:
    seen: list[int] = []

    def add() -> None:
        database.add_build("b", 1.0, 10)
        seen.append(_on_disk(path))

    other = threading.Thread(target=add)
    with database.one_commit():
        database.add_build("a", 1.0, 10)
        other.start()
    other.join(timeout=60)
    assert seen == [2]
