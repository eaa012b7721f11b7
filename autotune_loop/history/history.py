"""All schedules that a user's runs have timed, in one SQLite file."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule
from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity
from halide_autotune.targets.errors import HistoryError, os_error_as

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS schedules (
    at_any_size TEXT NOT NULL, at_its_size TEXT NOT NULL, pipeline TEXT NOT NULL, size TEXT NOT NULL,
    halide_target TEXT NOT NULL, device TEXT NOT NULL, clock TEXT NOT NULL, time_ms REAL NOT NULL,
    found_by TEXT NOT NULL, halide_version TEXT NOT NULL, at_unix_s REAL NOT NULL, schedule BLOB NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (at_any_size, at_its_size, halide_target, device, clock, sha256)
) WITHOUT ROWID
"""
_SALT_SCHEMA = "CREATE TABLE IF NOT EXISTS salts (salt TEXT NOT NULL)"
_NAMES = tuple(field.name for field in fields(KnownSchedule))
_COLUMNS = ", ".join(_NAMES)
# Of a schedule that was timed again the newest time counts.
_ADD = f"""
INSERT INTO schedules ({_COLUMNS}, sha256) VALUES ({"?, " * len(_NAMES)}?)
ON CONFLICT DO UPDATE SET time_ms = excluded.time_ms, found_by = excluded.found_by, at_unix_s = excluded.at_unix_s,
    halide_version = excluded.halide_version WHERE excluded.at_unix_s > at_unix_s
"""
# Where times compare: at one size and one place. This place, others of this Halide target, then the newest.
_GROUPS = """
SELECT at_its_size, halide_target, device, clock FROM schedules WHERE at_any_size = ? AND halide_target GLOB ?
GROUP BY 1, 2, 3, 4
ORDER BY (halide_target, device, clock) = (?, ?, ?) DESC, halide_target = ? DESC, max(at_unix_s) DESC
"""
_BEST = f"""
SELECT {_COLUMNS} FROM schedules
WHERE at_any_size = ? AND (at_its_size, halide_target, device, clock) = (?, ?, ?, ?) ORDER BY time_ms LIMIT ?
"""
_SUMMARY = """
SELECT pipeline, size, halide_target, device, clock, count(*), min(time_ms), max(at_unix_s)
FROM schedules GROUP BY at_its_size, 3, 4, 5 ORDER BY pipeline, at_its_size, 8 DESC
"""
_PRUNE = """
DELETE FROM schedules WHERE (at_its_size, halide_target, device, clock, sha256) IN (
    SELECT at_its_size, halide_target, device, clock, sha256 FROM (
        SELECT *, row_number() OVER (
            PARTITION BY at_its_size, halide_target, device, clock ORDER BY time_ms
        ) AS rank FROM schedules
    ) WHERE (? IS NULL OR pipeline = ?) AND (rank > ? OR at_unix_s < ?)
)
"""
_LOCKED_S = 30.0
_DAMAGED_STEP = "Move the file away; `sdk history add RUN` fills a new one from the folders of runs."


@dataclass(frozen=True)
class PlaceSummary:
    """What is known of a pipeline at one size and one place.

    Attributes:
        newest_unix_s: when the last of its schedules was timed.
    """

    pipeline: str
    size: str
    halide_target: str
    device: str
    clock: str
    schedules: int
    best_ms: float
    newest_unix_s: float


class History:
    """The history in a file, which is made when something is first added.

    Each call is one transaction, so runs may use it at the same time, and a process that is killed leaves what was
    there before.

    Every method raises HistoryError: the file is damaged or of a newer SDK, others have used it for half a minute, or
    it cannot be written.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def add(self, schedules: Iterable[KnownSchedule]) -> int:
        """Add schedules; returns how many of them were not known at their place."""
        rows = [_row(one) for one in schedules]  # before others have to wait
        with os_error_as(HistoryError, f"{self.file.parent} cannot be made"):
            self.file.parent.mkdir(parents=True, exist_ok=True)
        with self._opened() as connection:
            before = connection.execute("SELECT count(*) FROM schedules").fetchone()[0]
            connection.executemany(_ADD, rows)
            return int(connection.execute("SELECT count(*) FROM schedules").fetchone()[0] - before)

    def best(self, pipeline: PipelineIdentity, place: tuple[str, str, str], count: int) -> list[KnownSchedule]:
        """Up to `count` of the fastest schedules of a pipeline for this kind of processor, the most promising first.

        Those of its size come before those of other sizes. Each place has its turn, because their times are not
        compared: `place` first, then others of its Halide target, then the newest.

        Args:
            place: Halide target, device and clock.
        """
        if not self.file.is_file():
            return []
        kind = "-".join(place[0].split("-")[:2])  # such as arm-64
        with self._opened() as connection:
            asked = (pipeline.at_any_size, f"{kind}-*", *place, place[0])
            groups = {
                group: [_known(*row) for row in connection.execute(_BEST, (pipeline.at_any_size, *group, count))]
                for group in connection.execute(_GROUPS, asked).fetchall()
            }
        distinct: dict[str, KnownSchedule] = {}
        for is_its_size in (True, False):
            ranked = [known for group, known in groups.items() if (group[0] == pipeline.at_its_size) == is_its_size]
            for one in filter(None, chain.from_iterable(zip_longest(*ranked))):
                distinct.setdefault(one.sha256, one)
        return [*distinct.values()][:count]

    def summary(self) -> list[PlaceSummary]:
        """What is known, by pipeline and place."""
        if not self.file.is_file():
            return []
        with self._opened() as connection:
            return [PlaceSummary(*row) for row in connection.execute(_SUMMARY)]

    def schedules(self, pipeline: str | None = None) -> list[KnownSchedule]:
        """All that is known, or all of the pipelines of one name, the oldest first."""
        if not self.file.is_file():
            return []
        query = f"SELECT {_COLUMNS} FROM schedules WHERE ? IS NULL OR pipeline = ? ORDER BY at_unix_s, sha256"
        with self._opened() as connection:
            return [_known(*row) for row in connection.execute(query, (pipeline, pipeline))]

    def salt(self) -> str:
        """A secret of this history, made with it, by which devices get other names in what is exported."""
        with self._opened() as connection:
            return str(connection.execute("SELECT salt FROM salts").fetchone()[0])

    def prune(self, *, pipeline: str | None = None, keep: int = 2**62, since_unix_s: float = 0.0) -> int:
        """Delete what is not worth its space; returns how many schedules that were.

        Args:
            pipeline: only of the pipelines of this name.
            keep: so many of the fastest of each place stay.
            since_unix_s: what was timed before goes.
        """
        if not self.file.is_file():
            return 0
        with self._opened() as connection:
            deleted = connection.execute(_PRUNE, (pipeline, pipeline, keep, since_unix_s)).rowcount
        with self._opened(in_transaction=False) as connection:
            connection.execute("VACUUM")
        return deleted

    @contextlib.contextmanager
    def _opened(self, *, in_transaction: bool = True) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self.file, _LOCKED_S, isolation_level=None)) as connection:
                if in_transaction:
                    connection.execute("BEGIN IMMEDIATE")
                _check_version(self.file, connection)
                yield connection
                if in_transaction:
                    connection.execute("COMMIT")
        except (sqlite3.Error, zlib.error, UnicodeDecodeError, TypeError) as error:
            raise _trouble(self.file, error) from error


def _check_version(file: Path, connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise HistoryError(
            f"The history {file} was written by a newer version of the SDK (version {version} of its form, not"
            f" {_VERSION}).",
            next_step="Use that version, or run with --no-history.",
        )
    if version < _VERSION:
        connection.execute(_SCHEMA)
        connection.execute(_SALT_SCHEMA)
        connection.execute("INSERT INTO salts VALUES (?)", (secrets.token_hex(),))
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def _trouble(file: Path, error: Exception) -> HistoryError:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return HistoryError(
            f"The history {file} is in use: others have held it for {_LOCKED_S:g} s.", next_step="Try again."
        )
    if isinstance(error, sqlite3.OperationalError):  # such as "disk is full" and "readonly database"
        return HistoryError(
            f"The history {file} cannot be used: {error}.", next_step="Free some space, or correct its permissions."
        )
    return HistoryError(f"The history {file} is damaged: {error}.", next_step=_DAMAGED_STEP)


def _row(one: KnownSchedule) -> Sequence[object]:
    told = {name: getattr(one, name) for name in _NAMES}
    return (*{**told, "schedule": zlib.compress(one.schedule.encode())}.values(), one.sha256)


def _known(*row: Any) -> KnownSchedule:
    told = dict(zip(_NAMES, row, strict=True))
    return KnownSchedule(**{**told, "schedule": zlib.decompress(told["schedule"]).decode()})
