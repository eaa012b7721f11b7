"""All schedules that a user's runs have timed, in one SQLite file."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain, product, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule, NestKey
from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity
from halide_autotune.targets.errors import HistoryError, os_error_as

_VERSION = 3
_SCHEMA = """
CREATE TABLE IF NOT EXISTS schedules (
    at_any_size TEXT NOT NULL, as_timed TEXT NOT NULL, pipeline TEXT NOT NULL, conditions TEXT NOT NULL,
    halide_target TEXT NOT NULL, device TEXT NOT NULL, clock TEXT NOT NULL, time_ms REAL NOT NULL,
    found_by TEXT NOT NULL, halide_version TEXT NOT NULL, at_unix_s REAL NOT NULL, schedule BLOB NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (at_any_size, as_timed, halide_target, device, clock, sha256)
) WITHOUT ROWID
"""
_SALT_SCHEMA = "CREATE TABLE IF NOT EXISTS salts (salt TEXT NOT NULL)"
_NEST_SCHEMA = """
CREATE TABLE IF NOT EXISTS loop_nests (
    as_timed TEXT NOT NULL, halide_target TEXT NOT NULL, sha256 TEXT NOT NULL, nest BLOB NOT NULL,
    PRIMARY KEY (as_timed, halide_target, sha256)
) WITHOUT ROWID
"""
# Until version 2 nests had no target; of a schedule that was timed for several, nobody knows whose nest it was.
_FROM_VERSION_2 = (
    """
INSERT OR IGNORE INTO loop_nests SELECT as_timed, min(halide_target), sha256, nest
FROM nests JOIN schedules USING (as_timed, sha256) GROUP BY as_timed, sha256 HAVING count(DISTINCT halide_target) = 1
""",
    "DROP TABLE nests",
)
_NAMES = tuple(field.name for field in fields(KnownSchedule))
_COLUMNS = ", ".join((*_NAMES, "sha256"))
_ADD = f"INSERT OR IGNORE INTO schedules ({_COLUMNS}) VALUES ({', '.join('?' * (len(_NAMES) + 1))})"
# Of a schedule that was timed again the newest time counts.
_UPDATE = """
UPDATE schedules SET time_ms = ?, found_by = ?, halide_version = ?, at_unix_s = ?
WHERE at_any_size = ? AND as_timed = ? AND halide_target = ? AND device = ? AND clock = ? AND sha256 = ?
    AND at_unix_s < ?
"""
# Where times compare. This place comes first, then others of this Halide target, then the newest.
_GROUPS = """
SELECT as_timed, halide_target, device, clock FROM schedules
WHERE at_any_size = ? AND substr(halide_target, 1, instr(halide_target, '-') - 1) IN (SELECT value FROM json_each(?))
GROUP BY 1, 2, 3, 4
ORDER BY (halide_target, device, clock) = (?, ?, ?) DESC, halide_target = ? DESC, max(at_unix_s) DESC
"""
_BEST = f"""
SELECT {", ".join(_NAMES)} FROM schedules
WHERE at_any_size = ? AND (as_timed, halide_target, device, clock) = (?, ?, ?, ?) ORDER BY time_ms LIMIT ?
"""
_SUMMARY = """
SELECT pipeline, conditions, halide_target, device, clock, count(*), min(time_ms), max(at_unix_s)
FROM schedules GROUP BY as_timed, 1, 3, 4, 5 ORDER BY pipeline, as_timed, 8 DESC
"""
_SCHEDULES = f"SELECT {', '.join(_NAMES)} FROM schedules WHERE ? IS NULL OR pipeline = ? ORDER BY at_unix_s, sha256"
_ADD_NEST = "INSERT OR REPLACE INTO loop_nests VALUES (?, ?, ?, ?)"
_NEST_GROUPS = """
SELECT as_timed, halide_target, device, clock FROM schedules JOIN loop_nests USING (as_timed, halide_target, sha256)
WHERE halide_target GLOB ? AND conditions GLOB ?
GROUP BY 1, 2, 3, 4 HAVING count(*) >= ? ORDER BY max(at_unix_s) DESC LIMIT ?
"""
# The order of hashes is one of chance.
_NESTS = """
SELECT nest, time_ms FROM schedules JOIN loop_nests USING (as_timed, halide_target, sha256)
WHERE (as_timed, halide_target, device, clock) = (?, ?, ?, ?) ORDER BY sha256 LIMIT ?
"""
_ALL_NESTS = "SELECT as_timed, halide_target, sha256, nest FROM loop_nests"
_DEVICES = "SELECT DISTINCT device FROM schedules"
_PRUNE_NESTS = """
DELETE FROM loop_nests
WHERE (as_timed, halide_target, sha256) NOT IN (SELECT as_timed, halide_target, sha256 FROM schedules)
"""
_PRUNE = """
DELETE FROM schedules WHERE (as_timed, halide_target, device, clock, sha256) IN (
    SELECT as_timed, halide_target, device, clock, sha256 FROM (
        SELECT *, row_number() OVER (
            PARTITION BY as_timed, pipeline, halide_target, device, clock ORDER BY time_ms
        ) AS rank FROM schedules
    ) WHERE (? IS NULL OR pipeline = ?) AND (rank > ? OR at_unix_s < ?)
)
"""
# Whose schedules are worth a try for each other; a DSP's are not, nor is a processor's for a DSP.
_PROCESSORS = ("x86", "arm", "riscv")
_PATIENCE_S = 30.0
# A run's first schedules wait for what they ask.
_READING_PATIENCE_S = 5.0


@dataclass(frozen=True)
class PlaceSummary:
    """What is known of a pipeline as it was timed at one place.

    Attributes:
        newest_unix_s: when the last of its schedules was timed.
    """

    pipeline: str
    conditions: str
    halide_target: str
    device: str
    clock: str
    schedules: int
    best_ms: float
    newest_unix_s: float


@dataclass(frozen=True)
class NestLimits:
    """How many loop nests are asked for: of so many pipelines, so many of each; none of pipelines with fewer."""

    most_pipelines: int
    most_each: int
    fewest_each: int


class History:
    """The history in a file, which is made when something is first added.

    Each change is one transaction, so runs may use it at the same time, and a process that is killed leaves what was
    there before.

    Every method raises HistoryError: the file is damaged or of a newer SDK, others hold it for long, or it cannot be
    written.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def add(self, schedules: Iterable[KnownSchedule], nests: Mapping[NestKey, bytes] = MappingProxyType({})) -> int:
        """Add schedules; returns how many of them were not known at their place.

        Args:
            nests: the loop nests that they are lowered to; the content of `.lowered` files.
        """
        several = [*schedules]  # before others have to wait
        with os_error_as(HistoryError, f"{self.file.parent} cannot be made"):
            self.file.parent.mkdir(parents=True, exist_ok=True)
        with self._changing() as connection:
            added = connection.executemany(_ADD, map(_row, several)).rowcount
            connection.executemany(_UPDATE, map(_update, several))
            connection.executemany(_ADD_NEST, [(*key, nest) for key, nest in nests.items()])
            return added

    def best(self, pipeline: PipelineIdentity, place: tuple[str, str, str], count: int) -> list[KnownSchedule]:
        """Up to `count` of the fastest schedules of a pipeline, the most promising first.

        Those for this kind of processor come before those for others, and those that were timed alike before those of
        other sizes and conditions. Each place has its turn, because their times are not compared: `place` first, then
        others of its Halide target, then the newest.

        Args:
            place: Halide target, device and clock.
        """
        kind = place[0].split("-")[0]
        kinds = json.dumps(_PROCESSORS if kind in _PROCESSORS else [kind])
        asked = (pipeline.at_any_size, kinds, *place, place[0])
        groups: dict[tuple[str, ...], list[KnownSchedule]] = {}
        with self._reading() as connection:
            if connection is None:
                return []
            for group in connection.execute(_GROUPS, asked).fetchall():
                found = connection.execute(_BEST, (pipeline.at_any_size, *group, count))
                groups[group] = [_known(*row) for row in found]
        distinct: dict[str, KnownSchedule] = {}
        own_kind = _kind_of(place[0])
        for wanted in product((True, False), repeat=2):
            ranked = [
                known
                for group, known in groups.items()
                if (_kind_of(group[1]) == own_kind, group[0] == pipeline.as_timed) == wanted
            ]
            for one in filter(None, chain.from_iterable(zip_longest(*ranked))):
                distinct.setdefault(one.sha256, one)
        return [*distinct.values()][:count]

    def nests(self, halide_target: str, threads: str, limits: NestLimits) -> list[list[tuple[bytes, float]]]:
        """Loop nests with their times in milliseconds, pipeline by pipeline at each place, the newest first.

        Args:
            halide_target: other targets of its kind of processor count, too.
            threads: as `conditions_text` tells them: others' tasks are shared out otherwise.
        """
        asked = (f"{_kind_of(halide_target)}-*", f"*, {threads}", limits.fewest_each, limits.most_pipelines)
        with self._reading() as connection:
            if connection is None or _version(self.file, connection) < _VERSION:
                return []
            groups = connection.execute(_NEST_GROUPS, asked).fetchall()
            return [connection.execute(_NESTS, (*group, limits.most_each)).fetchall() for group in groups]

    def all_nests(self) -> dict[NestKey, bytes]:
        """The loop nests of all schedules, as `add` takes them."""
        with self._reading() as connection:
            if connection is None or _version(self.file, connection) < _VERSION:
                return {}
            rows = connection.execute(_ALL_NESTS)
            return {(as_timed, target, sha256): nest for as_timed, target, sha256, nest in rows}

    def devices(self) -> list[str]:
        """The names of all devices."""
        with self._reading() as connection:
            return [] if connection is None else [name for (name,) in connection.execute(_DEVICES)]

    def summary(self) -> list[PlaceSummary]:
        """What is known, by pipeline and place."""
        with self._reading() as connection:
            return [] if connection is None else [PlaceSummary(*row) for row in connection.execute(_SUMMARY)]

    def schedules(self, pipeline: str | None = None) -> list[KnownSchedule]:
        """All that is known, or all of the pipelines of one name, the oldest first."""
        with self._reading() as connection:
            if connection is None:
                return []
            return [_known(*row) for row in connection.execute(_SCHEDULES, (pipeline, pipeline))]

    def salt(self) -> str:
        """A secret of this history, made with it, by which devices get other names in what is exported."""
        with self._changing() as connection:
            return str(connection.execute("SELECT salt FROM salts").fetchone()[0])

    def prune(self, *, pipeline: str | None = None, keep: int | None = None, since_unix_s: float = 0.0) -> int:
        """Delete what is not worth its space; returns how many schedules that were.

        Args:
            pipeline: only of the pipelines of this name.
            keep: only so many of the fastest of each place stay; None keeps slow ones, too.
            since_unix_s: what was timed before goes.
        """
        if not os.path.isfile(self.file):
            return 0
        with self._changing() as connection:
            deleted = connection.execute(_PRUNE, (pipeline, pipeline, keep, since_unix_s)).rowcount
            connection.execute(_PRUNE_NESTS)
        # They are deleted; that the file also becomes smaller may wait until nobody uses it.
        with contextlib.suppress(HistoryError), self._connected(_READING_PATIENCE_S) as connection:
            connection.execute("VACUUM")
        return deleted

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """The file at one moment; None if there is nothing in it."""
        if not os.path.isfile(self.file):
            yield None
            return
        with self._connected(_READING_PATIENCE_S) as connection:
            connection.execute("BEGIN")
            yield connection if _version(self.file, connection) else None

    @contextlib.contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._connected(_PATIENCE_S) as connection:
            connection.execute("BEGIN IMMEDIATE")
            version = _version(self.file, connection)
            if version < _VERSION:
                for schema in (_SCHEMA, _SALT_SCHEMA, _NEST_SCHEMA):
                    connection.execute(schema)
                for step in _FROM_VERSION_2 if version == 2 else ():
                    connection.execute(step)
                if not version:
                    connection.execute("INSERT INTO salts VALUES (?)", (secrets.token_hex(),))
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            yield connection
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def _connected(self, patience_s: float) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self.file, patience_s, isolation_level=None)) as connection:
                yield connection
        except (sqlite3.Error, zlib.error, UnicodeError, TypeError) as error:
            raise _trouble(self.file, error, patience_s) from error


def _kind_of(halide_target: str) -> str:
    """The kind of processor that a Halide target is for, such as arm-64."""
    return "-".join(halide_target.split("-")[:2])


def _version(file: Path, connection: sqlite3.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > _VERSION:
        raise HistoryError(
            f"The history {file} was written by a newer version of the SDK (version {version} of its form, not"
            f" {_VERSION}).",
            next_step="Use that version, or run with --no-history.",
        )
    return version


def _trouble(file: Path, error: Exception, patience_s: float) -> HistoryError:
    if not isinstance(error, sqlite3.OperationalError):
        step = "Move the file away; `sdk history add RUN` fills a new one from the folders of runs."
        return HistoryError(f"The history {file} is damaged: {error}.", next_step=step)
    if "locked" in str(error):
        return HistoryError(
            f"The history {file} is in use: others have held it for {patience_s:g} s.", next_step="Try again."
        )
    step = "Look at the free space there and at its permissions, or run with --no-history."
    return HistoryError(f"The history {file} cannot be used: {error}.", next_step=step)


def _row(one: KnownSchedule) -> tuple[object, ...]:
    told = {name: getattr(one, name) for name in _NAMES}
    return (*{**told, "schedule": zlib.compress(one.schedule.encode())}.values(), one.sha256)


def _update(one: KnownSchedule) -> tuple[object, ...]:
    newer = (one.time_ms, one.found_by, one.halide_version, one.at_unix_s)
    return (*newer, one.at_any_size, one.as_timed, *one.place, one.sha256, one.at_unix_s)


def _known(*row: Any) -> KnownSchedule:
    told = dict(zip(_NAMES, row, strict=True))
    return KnownSchedule(**{**told, "schedule": zlib.decompress(told["schedule"]).decode()})
