"""What a run's database says of a published schedule."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.store.published import INCUMBENT, OWN, Published, newest_published, read_published
from halide_autotune.autotune_loop.store.read_database import check_schema_version, read_database
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule, read_size_schedules
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.process.content_cache import file_sha256

_T = TypeVar("_T")
_END_OF_DATES_UNIX_S = 253402300800.0


@dataclass(frozen=True)
class RecordedFacts:
    """What is known of the winner of one argument set.

    Attributes:
        published: its figures, as the run has told them.
        clock: 'wall', or the name of a clock that is not a device's.
        samples: schedules timed.
        weights_sha256: of the newest accepted weights; None without any.
        tuned_unix_s: when its last measurement was recorded.
        size_schedules: what is used at each size; empty with one size, or where that was not decided.
        default_is_greedy: a greedy search gave the default, because the full one would not have ended in time.
    """

    published: Published
    clock: str
    samples: int
    weights_sha256: str | None
    tuned_unix_s: float
    size_schedules: tuple[SizeSchedule, ...] = ()
    default_is_greedy: bool = False


def read_recorded_facts(header: Path, path: Path, task_index: int) -> RecordedFacts:
    """What the database `path` says of a run's best.<name>.schedule.h.

    Raises:
        RunFolderError: the database is missing or damaged, or has not published this header; an incumbent has won.
    """
    sha256 = file_sha256(header)
    return _read(path, lambda database: _facts(database, header, path, task_index, sha256))


def check_has_winner(folder: Path, header: Path, task_index: int) -> None:
    """Check that a run has a winner to ship.

    Args:
        header: its best.<name>.schedule.h, or parameters.

    Raises:
        RunFolderError: there is none, or what was in use is still the best and has no header.
    """
    if header.is_file():
        return
    path = folder / "tuning.db"
    newest = _read(path, lambda database: newest_published(database, path, task_index))
    if newest is not None and not newest[0]:
        _check_is_new(header, newest[1])
    raise RunFolderError(
        f"{folder} has no winner to ship: {header.name} is missing from its samples.",
        next_step=f"Continue the run: sdk autotune --resume {folder}.",
    )


def _check_is_new(header: Path, published: Published) -> None:
    if published.sample == INCUMBENT:
        raise RunFolderError(
            f"{header} is nothing new to ship: the header in use is still the best.",
            next_step="Keep that header, or tune longer.",
        )
    if published.sample == OWN:
        raise RunFolderError(
            f"{header} is nothing new to ship: the generator's own schedule is still the best.",
            next_step="Keep the generator as it is, or tune longer.",
        )


def own_schedule_stays(header: Path, path: Path, task_index: int) -> bool:
    """Whether a run's best.<name>.schedule.h is what the generator does by itself, as the database `path` says.

    Raises:
        RunFolderError: the database is missing or damaged, or has not published this header.
    """
    sha256 = file_sha256(header)
    return _read(path, lambda database: _published(database, header, path, task_index, sha256).sample == OWN)


def _read(path: Path, read: Callable[[sqlite3.Connection], _T]) -> _T:
    next_step = "Ship another run, or tune again."
    if not path.is_file():
        raise RunFolderError(f"{path} is missing: it has the run's measurements.", next_step=next_step)
    try:
        return read_database(path, read)
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise RunFolderError(f"{path} is damaged: {error}.", next_step=next_step) from error


def _published(database: sqlite3.Connection, header: Path, path: Path, task_index: int, sha256: str) -> Published:
    check_schema_version(path, database.execute("PRAGMA user_version").fetchone()[0])
    published = read_published(database, path, task_index, sha256)
    if published is None:
        raise RunFolderError(
            f"{header} was changed after the run had published it.",
            next_step="Continue the run, which publishes it again; or build with the header itself.",
        )
    return published


def _facts(database: sqlite3.Connection, header: Path, path: Path, task_index: int, sha256: str) -> RecordedFacts:
    published = _published(database, header, path, task_index, sha256)
    _check_is_new(header, published)
    rows = database.execute(
        "SELECT clock, at_unix_s FROM measurements WHERE symbol=? ORDER BY rowid", (published.symbol,)
    ).fetchall()
    if not rows:
        raise ValueError(f"it has no time of {published.symbol}, which {header.name} is")
    samples = database.execute(
        "SELECT count(DISTINCT m.symbol) FROM measurements m JOIN candidates c ON c.symbol = m.symbol"
        " WHERE c.task=? AND m.purpose='sample'",
        (task_index,),
    ).fetchone()[0]
    weights = database.execute("SELECT sha256 FROM weights WHERE accepted=1 ORDER BY rowid DESC LIMIT 1").fetchone()
    tuned_unix_s = max(float(at_unix_s) for _, at_unix_s in rows)
    if not (math.isfinite(tuned_unix_s) and 0.0 <= tuned_unix_s < _END_OF_DATES_UNIX_S):
        raise ValueError(f"{tuned_unix_s} is not a moment")
    greedy = database.execute(
        "SELECT 1 FROM candidates WHERE task=? AND round=0 AND origin=? LIMIT 1", (task_index, Origin.GREEDY.value)
    ).fetchone()
    return RecordedFacts(
        published=published,
        clock=str(rows[0][0]),
        samples=int(samples),
        weights_sha256=None if weights is None else str(weights[0]),
        tuned_unix_s=tuned_unix_s,
        size_schedules=read_size_schedules(database, path, task_index, sha256),
        default_is_greedy=greedy is not None,
    )
