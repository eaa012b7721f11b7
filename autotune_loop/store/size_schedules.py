"""What is used at each size of a run: the table `size_schedules` of `tuning.db`, which runs at one size lack."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.store.published import ScheduleTime, SpeedUp
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.values.records import Source, plain, record

# What messages call the schedule that is published for all sizes of a run.
GENERAL = "the schedule for all sizes"
TABLE = "size_schedules"
SIZE_SCHEDULES_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    task INTEGER NOT NULL, header_sha256 TEXT NOT NULL, schedules TEXT NOT NULL, at_unix_s REAL NOT NULL)"""


@dataclass(frozen=True)
class SizeSchedule:
    """What is used at one size of a run.

    Attributes:
        size: as times have it, such as 'input=640x480 output=640x480'.
        argument, extents: what a call tells the size by, such as 'output' and '640x480'.
        sample: the schedule, as in `Published`.
        symbol: of its kernel.
        header: its file beside the run's best header; empty where the schedule for all sizes is used.
        header_sha256: of that file; empty without one.
        message: why it is used, for the user.
        is_unconfirmed: another schedule may be much faster there, but no play-off was held to its end.
        tuned: its time there; None where the schedule for all sizes is used.
        speed_up: over the schedule for all sizes, there; None where that is used.
    """

    size: str
    argument: str
    extents: str
    sample: str
    symbol: str
    header: str
    header_sha256: str
    message: str
    is_unconfirmed: bool = False
    tuned: ScheduleTime | None = None
    speed_up: SpeedUp | None = None

    @property
    def is_own(self) -> bool:
        """Whether the size has a schedule of its own."""
        return bool(self.header)

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form."""
        return {
            "size": self.size,
            "extents": self.extents,
            "sample": self.sample,
            "header": self.header or None,
            "message": self.message,
            "tuned_ms": self.tuned and self.tuned.median_ms,
            "speed_up": self.speed_up and self.speed_up.times,
            "speed_up_low": self.speed_up and self.speed_up.low,
            "speed_up_high": self.speed_up and self.speed_up.high,
        }


@dataclass(frozen=True)
class _Row:
    schedules: tuple[SizeSchedule, ...]


def size_schedules_row(schedules: Sequence[SizeSchedule]) -> str:
    """What the database keeps; `read_size_schedules` reads it back."""
    return json.dumps(plain(_Row(tuple(schedules))))


def read_size_schedules(
    connection: sqlite3.Connection, path: Path, task_index: int, header_sha256: str
) -> tuple[SizeSchedule, ...]:
    """What is used at each size beside the published header of this text; empty if nothing was decided beside it.

    Args:
        path: of the database.

    Raises:
        RunFolderError: the row is damaged.
        sqlite3.Error: the database is.
    """
    if not connection.execute("SELECT count(*) FROM sqlite_master WHERE name=?", (TABLE,)).fetchone()[0]:
        return ()
    row = connection.execute(
        f"SELECT schedules FROM {TABLE} WHERE task=? AND header_sha256=? ORDER BY rowid DESC LIMIT 1",
        (task_index, header_sha256),
    ).fetchone()
    if row is None:
        return ()
    source = Source(f"{path} is damaged", RunFolderError, next_step="Restore it from a copy, or start a new run.")
    return source.check(record(_Row), source.json(str(row[0]))).schedules
