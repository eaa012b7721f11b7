"""A run as its folder records it, read without touching it: a live run may be writing there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from halide_autotune.autotune_loop.candidate import Measured, found_by
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.specification.tuning_task import published_paths
from halide_autotune.autotune_loop.store.published import Published, read_published
from halide_autotune.autotune_loop.store.read_database import (
    CALIBRATIONS_SQL,
    MEASURED_SQL,
    NOT_DONE_SQL,
    SCALES_SQL,
    CalibrationRow,
    calibration_of,
    check_schema_version,
    read_database,
    scale_row,
    scales_of,
    settled,
    timing_of,
)
from halide_autotune.autotune_loop.store.run_database import NOT_DONE
from halide_autotune.autotune_loop.store.run_record import RunRecord, read_run_record
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule, read_size_schedules
from halide_autotune.devices.device import Clock
from halide_autotune.targets.errors import RunFolderError, ToolchainError, os_error_as

if TYPE_CHECKING:
    from pandas import DataFrame

_DATABASE = "tuning.db"
_DAMAGED_STEP = "Restore it from a copy, or start a new run."


@dataclass(frozen=True)
class PublishedHeader:
    """What a run has published for an argument set: its header, or the parameters that were tuned, with its figures.

    Attributes:
        sha256: of its file.
        size_schedules: what is used at each size; empty with one size, or where that was not decided.
    """

    published: Published
    text: str
    sha256: str
    size_schedules: tuple[SizeSchedule, ...] = ()


@dataclass(frozen=True)
class Training:
    """One training, with the scores of the old and the new weights on held-out schedules if there were enough.

    Attributes:
        sha256: of the new weights' file.
    """

    round_index: int
    sha256: str
    accepted: bool
    reason: str
    accuracy_before: float | None
    accuracy_after: float | None


@dataclass(frozen=True)
class SensorReading:
    """The hottest of a device's temperature sensors at a moment."""

    device: str
    elapsed_s: float
    hottest_c: float


@dataclass(frozen=True)
class TaskSamples:
    """The measured candidates of one argument set, in the order of timing; there is at least one."""

    task_index: int
    samples: tuple[Measured, ...]

    @property
    def fastest(self) -> Measured:
        """The fastest as the rounds have timed them, which need not be the one that is published."""
        return min(self.samples, key=lambda sample: sample.median_ms)

    @property
    def noun(self) -> str:
        """What one of them is."""
        return "parameter set" if all(sample.candidate.is_parameter_set for sample in self.samples) else "schedule"

    @property
    def default(self) -> Measured | None:
        """The default schedule, if it was timed."""
        return next((sample for sample in self.samples if sample.candidate.is_default), None)

    @property
    def by_device(self) -> dict[str, tuple[int, float]]:
        """Device → how many of them it timed, and the fastest of these in milliseconds."""
        rows: dict[str, tuple[int, float]] = {}
        for sample in self.samples:
            count, best_ms = rows.get(sample.device, (0, sample.median_ms))
            rows[sample.device] = (count + 1, min(best_ms, sample.median_ms))
        return rows


@dataclass(frozen=True)
class RecordedRun:
    """A run, as its folder has it.

    Attributes:
        start_unix_s: when its first record was written.
        samples: the measured candidates, in the order of timing.
        headers: by argument set; without those that have none, or one that was changed after it was published.
        failures: stage, reason and message → how often.
        incidents: device, trouble and message → how often.
        not_done: schedules that were chosen but not timed because the run ended.
        duration_s: from the first record to the last.
    """

    folder: Path
    record: RunRecord
    start_unix_s: float
    samples: tuple[Measured, ...]
    headers: Mapping[int, PublishedHeader]
    trainings: tuple[Training, ...]
    scales: tuple[CalibrationRow, ...]
    readings: tuple[SensorReading, ...]
    failures: Mapping[tuple[str, str, str], int]
    incidents: Mapping[tuple[str, str, str], int]
    not_done: int
    duration_s: float

    @property
    def clock(self) -> str:
        """What the times were measured with."""
        return self.record.made_with.clock

    @property
    def has_device_times(self) -> bool:
        """Whether a real device took the times."""
        return self.clock in [clock.value for clock in Clock if clock.is_device_time]

    @property
    def clock_words(self) -> str:
        """What the times are, for people."""
        return Clock.words_of(self.clock)

    def to_frame(self) -> DataFrame:
        """The measured candidates as a table of pandas, a row for each, in the order of timing.

        Its columns: sample, argument_set, round, time_ms, spread_ms, timings, found_by, moves, parents (their symbols),
        predicted_ms, parameters, device, clock, elapsed_s (since the start of the run), symbol.

        Raises:
            ToolchainError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise ToolchainError(
                "pandas is not installed, which tables are made with.",
                next_step="Install it: pip install 'halide-autotune-sdk[frame]'",
            ) from error
        return DataFrame([_frame_row(self, sample) for sample in self.samples])

    @property
    def tasks(self) -> list[TaskSamples]:
        """The argument sets that have a sample, in their order."""
        indices = sorted({sample.candidate.task_index for sample in self.samples})
        return [TaskSamples(i, tuple(s for s in self.samples if s.candidate.task_index == i)) for i in indices]


def _frame_row(run: RecordedRun, sample: Measured) -> dict[str, object]:
    one = sample.candidate
    return {
        "sample": one.sample,
        "argument_set": one.task_index,
        "round": one.round_index,
        "time_ms": sample.median_ms,
        "spread_ms": sample.spread_ms,
        "timings": sample.processes,
        "found_by": found_by(one.point),
        "moves": ", ".join(getattr(one.point, "moves", ())),
        "parents": " ".join(getattr(one.point, "parents", ())),
        "predicted_ms": one.predicted_ms,
        "parameters": set_text(one.parameters),
        "device": sample.device,
        "clock": sample.clock,
        "elapsed_s": sample.at_unix_s - run.start_unix_s,
        "symbol": one.symbol,
    }


def read_recorded_run(folder: Path) -> RecordedRun:
    """Read a run folder.

    Raises:
        RunFolderError: it is not a run folder, is damaged, or was made by another version of the SDK.
    """
    record = read_run_record(folder)
    path = folder / _DATABASE
    if not path.is_file():
        raise RunFolderError(f"{folder} is damaged: {_DATABASE} is missing.", next_step=_DAMAGED_STEP)
    headers = _header_bytes(folder, record)  # before the database, which has their figures first
    try:
        return read_database(path, lambda connection: _read(folder, record, headers, connection))
    except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunFolderError(f"{path} is damaged: {error}.", next_step=_DAMAGED_STEP) from error


def run_version(folder: Path) -> str:
    """Changes whenever the run records something; cheap.

    Raises:
        RunFolderError: the folder is gone.
    """
    with os_error_as(RunFolderError, f"{folder} cannot be read"):
        states = [path.stat() for path in sorted(folder.glob(f"{_DATABASE}*")) if not path.name.endswith("-shm")]
    return "-".join(f"{state.st_mtime_ns}.{state.st_size}" for state in states)


def _read(folder: Path, record: RunRecord, headers: Mapping[int, bytes], connection: sqlite3.Connection) -> RecordedRun:
    check_schema_version(folder / _DATABASE, connection.execute("PRAGMA user_version").fetchone()[0])
    connection.execute("BEGIN")  # all tables at one moment
    tables = ("candidates", "measurements", "failures", "incidents", "device_states", "weights", "batches")
    moments = " UNION ALL ".join(f"SELECT min(at_unix_s) AS a, max(at_unix_s) AS b FROM {t}" for t in tables)
    first_s, last_s = connection.execute(f"SELECT min(a), max(b) FROM ({moments})").fetchone()
    start_s = float(first_s or 0.0)
    not_done = connection.execute(NOT_DONE_SQL, (NOT_DONE,)).fetchone()[0]
    return RecordedRun(
        folder=folder,
        record=record,
        start_unix_s=start_s,
        samples=tuple(_samples(folder / "samples", connection)),
        headers=_published_headers(folder / _DATABASE, headers, connection),
        trainings=_trainings(connection),
        scales=tuple(calibration_of(*row) for row in connection.execute(CALIBRATIONS_SQL)),
        readings=_readings(connection, start_s),
        failures=_counts(
            connection,
            "SELECT stage, reason, message, count(*) FROM failures WHERE reason <> ? GROUP BY 1, 2, 3 ORDER BY 4 DESC",
            (NOT_DONE,),
        ),
        incidents=_counts(
            connection, "SELECT device, trouble, message, count(*) FROM incidents GROUP BY 1, 2, 3 ORDER BY 4 DESC", ()
        ),
        not_done=int(not_done),
        duration_s=float(last_s or 0.0) - start_s,
    )


def _samples(folder: Path, connection: sqlite3.Connection) -> list[Measured]:
    scales = scales_of(scale_row(*row) for row in connection.execute(SCALES_SQL))
    return settled((timing_of(folder, *row) for row in connection.execute(MEASURED_SQL)), scales)


def _header_bytes(folder: Path, record: RunRecord) -> dict[int, bytes]:
    found = {}
    for index, path in enumerate(published_paths(folder / "samples", record.spec.tasks)):
        with contextlib.suppress(OSError):  # a run without a result has published none
            found[index] = path.read_bytes()
    return found


def _published_headers(
    path: Path, headers: Mapping[int, bytes], connection: sqlite3.Connection
) -> dict[int, PublishedHeader]:
    found = {}
    for index, data in headers.items():
        sha256 = hashlib.sha256(data).hexdigest()
        published = read_published(connection, path, index, sha256)
        if published is not None:
            at_sizes = read_size_schedules(connection, path, index, sha256)
            found[index] = PublishedHeader(published, data.decode("utf-8", "replace"), sha256, at_sizes)
    return found


def _trainings(connection: sqlite3.Connection) -> tuple[Training, ...]:
    # Imported here, because they import numpy.
    from halide_autotune.autotune_loop.cost_model.ranking import FEWEST_PAIRS
    from halide_autotune.autotune_loop.cost_model.training_report import HELD_OUT

    trainings = []
    for round_index, sha256, accepted, reason, text in connection.execute(
        "SELECT round, sha256, accepted, reason, report FROM weights ORDER BY rowid"
    ):
        report = json.loads(str(text))
        is_held_out = report.get("judged_on", HELD_OUT) == HELD_OUT
        accuracies = [(report.get(key) or {}) if is_held_out else {} for key in ("before", "after")]
        before, after = (
            scores.get("pairwise_accuracy") if scores.get("pairs", FEWEST_PAIRS) >= FEWEST_PAIRS else None
            for scores in accuracies
        )
        trainings.append(Training(int(round_index), str(sha256), bool(accepted), str(reason), before, after))
    return tuple(trainings)


def _readings(connection: sqlite3.Connection, start_s: float) -> tuple[SensorReading, ...]:
    readings = []
    for device, text, at_s in connection.execute("SELECT device, state, at_unix_s FROM device_states ORDER BY rowid"):
        temperatures_c = [float(sensor["celsius"]) for sensor in json.loads(str(text)).get("temperatures", ())]
        if temperatures_c:
            readings.append(SensorReading(str(device), float(at_s) - start_s, max(temperatures_c)))
    return tuple(readings)


def _counts(connection: sqlite3.Connection, query: str, values: tuple[object, ...]) -> dict[tuple[str, str, str], int]:
    return {(str(a), str(b), str(c)): int(count) for a, b, c, count in connection.execute(query, values)}
