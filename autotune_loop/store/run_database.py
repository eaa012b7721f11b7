"""`tuning.db`: every candidate, build, measurement, failure and set of weights of a run; rows are only ever added."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.candidate import (
    Candidate,
    Measured,
    Placement,
    SchedulePoint,
    SearchPoint,
    Yardstick,
    task_of,
)
from halide_autotune.autotune_loop.events import SampleFailed
from halide_autotune.autotune_loop.run_scale import RunScale
from halide_autotune.autotune_loop.store.board_factor import BoardFactor
from halide_autotune.autotune_loop.store.kernel_failure import FAILURE_SQL, KernelFailure
from halide_autotune.autotune_loop.store.published import NEWEST_PUBLISHED_SQL, Published, published_of
from halide_autotune.autotune_loop.store.read_database import (
    CALIBRATIONS_SQL,
    CANDIDATE_COLUMNS,
    MEASURED_SQL,
    NOT_DONE_SQL,
    SCALES_SQL,
    SCHEMA_VERSION,
    CalibrationRow,
    calibration_of,
    candidate_of,
    check_schema_version,
    positive,
    scale_row,
    scales_of,
    settled,
    shares_row,
    timing_of,
)
from halide_autotune.autotune_loop.store.schema import FUNC_SHARES, FUNC_SHARES_SCHEMA, SCHEMA
from halide_autotune.autotune_loop.store.size_schedules import SIZE_SCHEDULES_SCHEMA, SizeSchedule, size_schedules_row
from halide_autotune.autotune_loop.store.size_schedules import TABLE as SIZE_SCHEDULES
from halide_autotune.autotune_loop.store.size_times import (
    HAS_SIZE_TIMES_SQL,
    SIZE_TIMES_SCHEMA,
    SIZE_TIMES_SQL,
    TABLE,
    settled_by_size,
    size_rows,
)
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.errors import RunFolderError

# A damaged file may hold invalid text, which reaches even SQLite's messages.
_TROUBLE = (sqlite3.Error, UnicodeDecodeError)
# The reason for candidates that were not timed because the run ended; they did not fail.
NOT_DONE = "stopped"

_LOST_STEP = "Restore it from a copy, or start a new run; `sdk retrain` can still learn from this run's samples."


class RunDatabase:
    """One run's database; safe to use from several threads. Each call is a transaction, on disk when it returns.

    Args:
        holds_results: the run has results; a missing or empty file is then an error.

    Raises:
        RunFolderError: the file is damaged, missing, of another version, or the disk is full.
    """

    def __init__(self, path: Path, *, holds_results: bool = False) -> None:
        self._path = path
        self._lock = threading.RLock()
        if holds_results and not (path.exists() and path.stat().st_size):
            raise RunFolderError(f"{path} is missing: it has the times of the run's samples.", next_step=_LOST_STEP)
        try:
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        except _TROUBLE as error:
            raise self._trouble(error) from error
        try:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version:
                check_schema_version(path, version)
            if version == SCHEMA_VERSION:
                self._check_tables()
            self._connection.executescript(SCHEMA)
            self._connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except _TROUBLE as error:
            self._connection.close()
            raise self._trouble(error) from error
        except RunFolderError:
            self._connection.close()
            raise

    def _check_tables(self) -> None:
        there = {row[0] for row in self._connection.execute("SELECT name FROM sqlite_master")}
        lost = [name for name in re.findall(r"EXISTS (\w+)", SCHEMA) if name not in there]
        if lost:
            raise RunFolderError(f"{self._path} is damaged: the table {lost[0]} is missing.", next_step=_LOST_STEP)

    @contextlib.contextmanager
    def one_commit(self) -> Iterator[None]:
        """Commit what is added within together, so that the disk is waited for once; other threads wait, too."""
        with self._lock:
            self._rows("BEGIN")
            try:
                yield
            finally:
                if self._connection.in_transaction:  # an error of the disk has ended it
                    self._rows("COMMIT")

    def _trouble(self, error: Exception) -> RunFolderError:
        return RunFolderError(
            f"{self._path} cannot be used: {error}.",
            next_step="Free disk space if the disk is full; otherwise the file is damaged: start a new run.",
        )

    def _add(self, table: str, *values: object) -> None:
        """Add a row; its last column is the time."""
        self._add_rows(table, [values])

    def _add_rows(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        """Add at least one row, all or none of them."""
        now_unix_s = time.time()
        marks = ",".join([f"({','.join('?' * (len(rows[0]) + 1))})"] * len(rows))
        try:
            with self._lock:
                values = [value for row in rows for value in (*row, now_unix_s)]
                self._connection.execute(f"INSERT INTO {table} VALUES {marks}", values)
        except _TROUBLE as error:
            raise self._trouble(error) from error

    def _rows(
        self, sql: str, values: Sequence[object] = (), convert: Callable[..., Any] = lambda *row: row
    ) -> list[Any]:
        """Rows as `convert` makes them of their columns: SQLite detects damage to its pages, but not to the values."""
        try:
            with self._lock:
                return [convert(*row) for row in self._connection.execute(sql, values)]
        except (*_TROUBLE, ValueError, TypeError, AttributeError) as error:
            raise self._trouble(error) from error

    def add_candidate(self, candidate: Candidate) -> None:
        """A schedule, or a set of parameters, was chosen for a batch."""
        point, how = candidate.point, tuple[float | None, ...]((None,) * 4)
        if isinstance(point, SearchPoint):
            how = (point.seed, point.beam_size, point.random_dropout, point.weights_noise)
        self._add(
            "candidates",
            None,
            candidate.round_index,
            candidate.task_index,
            candidate.sample_index,
            candidate.symbol,
            candidate.point.origin.value,
            *how,
            json.dumps(dict(point.values)) if point.values else None,
            _lineage(point) if isinstance(point, SchedulePoint) else None,
            candidate.schedule_sha256,
            candidate.predicted_ms,
            candidate.search_s,
        )

    def add_build(self, symbol: str, build_s: float, object_bytes: int) -> None:
        """The code of a candidate or a reference was generated."""
        self._add("builds", symbol, build_s, object_bytes)

    def add_measurement(
        self, measurement: Measurement, purpose: str, device_held_s: float, placement: Placement | None = None
    ) -> None:
        """A kernel was timed; `purpose` is 'sample', 'race' (of the leaders), 'confirmation' (of the next yardstick),
        '[size ]play-off' or 'reference'."""
        if rows := size_rows(measurement, purpose):  # first, so that what has a time has those at the sizes
            self._rows(SIZE_TIMES_SCHEMA)
            self._add_rows(TABLE, rows)
        self._add(
            "measurements",
            measurement.kernel,
            purpose,
            measurement.device,
            measurement.clock.value,
            measurement.median_s * 1e3,
            measurement.minimum_s * 1e3,
            measurement.spread_s * 1e3,
            json.dumps(measurement.repetitions_s),
            measurement.stopped_by,
            int(measurement.output_checked),
            device_held_s,
            measurement.factor,
            json.dumps(measurement.canary_s),
            json.dumps(measurement.disturbed),
            "" if measurement.beside is None else json.dumps(asdict(measurement.beside)),
            None if placement is None else placement.relative,
            None if placement is None else placement.reference_ms,
            "" if measurement.machine is None else json.dumps(asdict(measurement.machine)),
        )

    def add_yardstick(self, task_index: int, yardstick: Yardstick) -> None:
        """Candidates are timed beside this schedule from now on."""
        scale = yardstick.scale
        place = (scale.device, scale.settled_ms, yardstick.relative, yardstick.log_error)
        self._add("yardsticks", task_index, yardstick.kernel.name, *place)

    def yardsticks(self) -> list[tuple[int, str, float, float]]:
        """Argument set, symbol, relative time and error of every yardstick, oldest first; see `Yardstick`."""
        return self._rows(
            "SELECT task, symbol, relative, log_error FROM yardsticks ORDER BY rowid",
            convert=lambda task, symbol, relative, error: (int(task), str(symbol), positive(relative), float(error)),
        )

    def scales(self) -> dict[int, RunScale]:
        """Argument set → its scale, from every timing so far; none where candidates are timed alone."""
        return scales_of(self._rows(SCALES_SQL, convert=scale_row))

    def add_failure(
        self, failed: SampleFailed, log: str = "", *, symbol: str | None = None, seed: int | None = None
    ) -> None:
        """A candidate failed at a stage: 'search', 'build', 'link', 'measure', 'race' or 'interrupted'."""
        said = (failed.stage, failed.reason, failed.message, log)
        self._add("failures", symbol, *said, failed.round_index, failed.task_index, seed)

    def add_incident(self, failure: MeasureFailure) -> None:
        """A device failed while it timed a schedule, which is timed again."""
        trouble = "" if failure.trouble is None else failure.trouble.value
        self._add("incidents", failure.kernel, failure.device, trouble, failure.message, int(failure.under_way))

    def add_calibration(self, row: CalibrationRow) -> None:
        """A device's reference schedules were timed."""
        board = row.board
        times_ms = {name: (one.time_ms, one.spread_ms) for name, one in row.times.items()}
        numbers = (board.factor, board.spread, board.noise, board.schedules, board.furthest, int(board.fits))
        self._add("calibrations", row.task_index, row.device, row.epoch, *numbers, json.dumps(times_ms))

    def calibrations(self) -> list[CalibrationRow]:
        """Every calibration, oldest first."""
        return self._rows(CALIBRATIONS_SQL, convert=calibration_of)

    def board_factors(self) -> dict[str, BoardFactor]:
        """Device → its newest factor, from the last argument set that it timed."""
        return {row.device: row.board for row in self.calibrations()}

    def add_device_state(self, device: str, moment: str, state: object) -> None:
        """The readings of a device's sensors 'before' or 'after' a batch."""
        self._add("device_states", device, moment, json.dumps(state))

    def incident_counts(self) -> dict[str, int]:
        """Incidents by 'device: trouble'."""
        return dict(self._rows("SELECT device || ': ' || trouble, count(*) FROM incidents GROUP BY 1 ORDER BY 2 DESC"))

    def device_use(self) -> dict[str, tuple[int, float]]:
        """Device → schedules timed on it, and the seconds that they occupied it."""
        sql = "SELECT device, count(*), sum(device_held_s) FROM measurements GROUP BY device"
        return dict(self._rows(sql, convert=lambda device, count, held_s: (device, (count, float(held_s)))))

    def add_weights(self, round_index: int, sha256: str, accepted: bool, reason: str, report: object) -> None:
        """A training ended."""
        self._add("weights", round_index, sha256, int(accepted), reason, json.dumps(report))

    def add_batch(self, round_index: int, task_index: int, stages_s: dict[str, float]) -> None:
        """A batch is complete; `stages_s` has the seconds of each stage."""
        self._add("batches", round_index, task_index, json.dumps(stages_s))

    def add_verdict(self, task_index: int, verdict: Mapping[str, object]) -> None:
        """A play-off ended; `verdict` is JSON-ready."""
        self._add("verdicts", task_index, json.dumps(verdict))

    def add_published(self, task_index: int, header_sha256: str, published: Published) -> None:
        """A header is about to be published, with these figures."""
        self._add("published", task_index, header_sha256, published.row())

    def newest_published(self, task_index: int) -> tuple[str, Published] | None:
        """What was published last for an argument set, with the hash of the file; see `newest_published`."""
        found = self._rows(NEWEST_PUBLISHED_SQL, (task_index,), lambda sha256, row: (str(sha256), row))
        return next(((sha256, published_of(row, self._path)) for sha256, row in found), None)

    def add_size_schedules(self, task_index: int, header_sha256: str, schedules: Sequence[SizeSchedule]) -> None:
        """It was decided what is used at each size, beside the published header of this text."""
        self._rows(SIZE_SCHEDULES_SCHEMA)
        self._add(SIZE_SCHEDULES, task_index, header_sha256, size_schedules_row(schedules))

    def add_func_shares(self, symbol: str, shares: Mapping[str, float]) -> None:
        """It was looked where a schedule's time goes: Func, by its name in Halide, and its share; none if unknown."""
        self._rows(FUNC_SHARES_SCHEMA)
        self._add(FUNC_SHARES, symbol, json.dumps(dict(shares)))

    def func_shares(self) -> dict[str, dict[str, float]]:
        """Symbol → where the time of that schedule goes, of those that were looked at, in that order."""
        self._rows(FUNC_SHARES_SCHEMA)
        return dict(self._rows(f"SELECT symbol, shares FROM {FUNC_SHARES} ORDER BY rowid", convert=shares_row))

    def known_schedules(self, task_index: int) -> set[str]:
        """The hashes of every schedule ever chosen for an argument set."""
        return set(self._rows("SELECT schedule_sha256 FROM candidates WHERE task=?", (task_index,), str))

    def measured(self) -> list[Measured]:
        """Every measured candidate, in the order of timing."""
        timings = self._rows(MEASURED_SQL, convert=partial(timing_of, self._path.parent / "samples"))
        measured, by_size_ms = settled(timings, self.scales()), self._by_size_ms()
        return [replace(one, by_size_ms=by_size_ms.get(one.candidate.symbol, {})) for one in measured]

    def _by_size_ms(self) -> dict[str, Mapping[str, float]]:
        (count,) = self._rows(HAS_SIZE_TIMES_SQL, convert=int)
        rows = self._rows(SIZE_TIMES_SQL, convert=lambda *row: (*map(str, row[:3]), positive(row[3]))) if count else []
        return settled_by_size(rows)

    def candidates(self, task_index: int) -> list[Candidate]:
        """Every candidate of an argument set, in the order in which they were chosen."""
        sql = f"SELECT {CANDIDATE_COLUMNS} FROM candidates c WHERE c.task=? ORDER BY c.candidate"
        return self._rows(sql, (task_index,), partial(candidate_of, self._path.parent / "samples"))

    def build_times_s(self, task_index: int | None = None) -> dict[str, float]:
        """Symbol → seconds to generate its code; of an argument set or of all, references included."""
        found = self._rows("SELECT symbol, build_s FROM builds", convert=_named_s)
        return {symbol: build_s for symbol, build_s in found if task_index in (None, task_of(symbol))}

    def timing_times_s(self, task_index: int) -> list[float]:
        """Seconds for which each timing of an argument set has held its device; references included."""
        found = self._rows("SELECT symbol, device_held_s FROM measurements", convert=_named_s)
        return [held_s for symbol, held_s in found if task_of(symbol) == task_index]

    def candidate(self, symbol: str) -> Candidate | None:
        """The candidate whose kernel has this symbol, if it was chosen."""
        sql = f"SELECT {CANDIDATE_COLUMNS} FROM candidates c WHERE c.symbol=?"
        found: list[Candidate] = self._rows(sql, (symbol,), partial(candidate_of, self._path.parent / "samples"))
        return found[0] if found else None

    def failure_reasons(self, task_index: int) -> dict[str, str]:
        """The candidates of an argument set that failed by themselves, each with the reason of its newest failure."""
        sql = (
            "SELECT symbol, reason FROM failures"
            " WHERE task=? AND stage IN ('build', 'link', 'measure', 'race') AND reason NOT IN (?, ?) ORDER BY rowid"
        )
        values = (task_index, MeasureFailureReason.DEVICE.value, NOT_DONE)
        return dict(self._rows(sql, values, lambda symbol, reason: (str(symbol), str(reason))))

    def failure_of(self, symbol: str) -> KernelFailure | None:
        """The newest failure of a candidate; None if it never failed."""
        found: list[KernelFailure] = self._rows(FAILURE_SQL, (symbol,), lambda *row: KernelFailure(*map(str, row)))
        return found[0] if found else None

    def unfinished(self, forgiven: str = "") -> list[tuple[str, int, int]]:
        """Symbol, round and argument set of the candidates with neither a time nor a failure but for that reason."""
        return self._rows(
            "SELECT symbol, round, task FROM candidates WHERE symbol NOT IN (SELECT symbol FROM measurements)"
            " AND symbol NOT IN (SELECT symbol FROM failures WHERE symbol IS NOT NULL AND reason <> ?)",
            (forgiven,),
            convert=lambda symbol, round_index, task_index: (str(symbol), int(round_index), int(task_index)),
        )

    def next_round(self) -> int:
        """The first round without candidates."""
        return max(self.next_rounds().values(), default=0)

    def next_rounds(self) -> dict[int, int]:
        """Argument set → its first round without candidates; argument sets without any candidate are left out."""
        sql = "SELECT task, max(round) FROM candidates GROUP BY task"
        return dict(self._rows(sql, convert=lambda task_index, newest: (int(task_index), int(newest) + 1)))

    def batches(self) -> list[tuple[int, int, dict[str, float]]]:
        """Argument set, round and seconds by stage of every complete batch, oldest first."""
        return self._rows(
            "SELECT task, round, stages_s FROM batches ORDER BY rowid",
            convert=lambda task_index, round_index, stages_s: (
                int(task_index),
                int(round_index),
                {stage: float(seconds) for stage, seconds in json.loads(stages_s).items()},
            ),
        )

    def failure_counts(self, task_index: int | None = None) -> dict[str, int]:
        """Failures by 'stage: reason', of one argument set or all, without candidates that were not timed because the
        run ended.
        """
        chosen = "reason <> ?" if task_index is None else "reason <> ? AND task = ?"
        sql = f"SELECT stage || ': ' || reason, count(*) FROM failures WHERE {chosen} GROUP BY 1 ORDER BY 2 DESC"
        return dict(self._rows(sql, (NOT_DONE,) if task_index is None else (NOT_DONE, task_index)))

    def last_failure(self, task_index: int) -> str:
        """The message of the newest failure of an argument set; empty if there is none."""
        sql = "SELECT message FROM failures WHERE task=? ORDER BY rowid DESC LIMIT 1"
        rows = self._rows(sql, (task_index,), str)
        return str(rows[0]) if rows else ""

    def not_done_count(self) -> int:
        """Candidates that were not timed because the run ended, and not since either."""
        (count,) = self._rows(NOT_DONE_SQL, (NOT_DONE,), int)
        return int(count)

    def stage_totals_s(self) -> dict[str, float]:
        """Seconds spent in each stage, over all batches."""
        totals: Counter[str] = Counter()
        for _, _, stages_s in self.batches():
            totals.update(stages_s)
        return dict(totals)

    def close(self) -> None:
        """Close the file; everything is on disk already."""
        self._connection.close()


def _named_s(symbol: object, time_s: Any) -> tuple[str, float]:
    return str(symbol), float(time_s)


def _lineage(point: SchedulePoint) -> str:
    told = {"parents": point.parents, "moves": point.moves}
    return json.dumps(told | ({"technique": point.plug_in} if point.plug_in else {}))
