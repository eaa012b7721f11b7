"""A run's database is read as it is at one moment, and nothing is left beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.store.read_database import read_database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "tuning.db"
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE times (ms)")
        connection.executemany("INSERT INTO times VALUES (?)", [("1.5" * 40,)] * 400)
    assert list(tmp_path.iterdir()) == [made]
    return made


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*), max(ms) FROM times").fetchone()[0])


def test_nothing_is_left_beside_it(path: Path) -> None:
    assert read_database(path, count) == 400
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:4096] + b"\xff" * 4096 + content[8192:], b"no database"):
        path.write_bytes(damaged)
        with pytest.raises(sqlite3.DatabaseError):
            read_database(path, count)
        assert list(path.parent.iterdir()) == [path]


def test_what_a_live_run_has_just_written_is_seen(path: Path, writer: sqlite3.Connection) -> None:
    writer.execute("INSERT INTO times VALUES ('2.5')")
    assert path.with_name("tuning.db-wal").stat().st_size > 0, "it is in the log alone"
    assert read_database(path, count) == 401


def test_a_run_that_begins_meanwhile_is_seen(path: Path, writer: sqlite3.Connection) -> None:
    counts: list[int] = []

    def read(connection: sqlite3.Connection) -> int:
        if not counts:
            writer.execute("INSERT INTO times VALUES ('2.5')")
        counts.append(count(connection))
        return counts[-1]

    assert read_database(path, read) == 401
    assert counts == [400, 401]


def test_a_file_that_is_gone_is_sqlites_error(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        read_database(tmp_path / "tuning.db", count)
    assert list(tmp_path.iterdir()) == []
