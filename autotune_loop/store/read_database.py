"""Reading a run's database: without a trace where a live run may be writing, and its rows as records."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from halide_autotune.autotune_loop.candidate import (
    Candidate,
    Measured,
    Origin,
    ParameterPoint,
    Point,
    SchedulePoint,
    SearchPoint,
    is_default,
    mean_ms,
    sample_name,
)
from halide_autotune.autotune_loop.run_scale import RunScale
from halide_autotune.autotune_loop.store.board_factor import BoardFactor, ReferenceTime
from halide_autotune.autotune_loop.store.schema import CANDIDATE_PURPOSES
from halide_autotune.targets.errors import RunFolderError

SCHEMA_VERSION = 8
CANDIDATE_COLUMNS = (
    "c.round, c.task, c.sample, c.symbol, c.schedule_sha256, c.search_s, c.predicted_ms, c.origin, c.seed, c.beam_size,"
    " c.random_dropout, c.weights_noise, c.parameters, c.lineage"
)
# What failed when it was timed again as a leader has no time: its code, or its output, was wrong.
MEASURED_SQL = (
    f"SELECT m.purpose, {CANDIDATE_COLUMNS}, m.median_ms, m.spread_ms, m.factor, m.clock, m.device,"
    " m.canary_s, m.at_unix_s, m.relative, m.relative IS NOT NULL AND m.reference_ms IS NULL"
    " FROM measurements m JOIN candidates c ON c.symbol = m.symbol"
    f" WHERE m.purpose IN {CANDIDATE_PURPOSES}"
    " AND c.symbol NOT IN (SELECT symbol FROM failures WHERE stage = 'race' AND symbol IS NOT NULL) ORDER BY m.rowid"
)
# What each timing says that the reference takes; the first row of an argument set names the device that counts.
SCALES_SQL = (
    "SELECT 0, task, device, reference_ms FROM yardsticks WHERE relative = 1 UNION ALL"
    " SELECT 1, c.task, m.device, m.reference_ms FROM measurements m JOIN candidates c ON c.symbol = m.symbol"
    " WHERE m.reference_ms IS NOT NULL ORDER BY 1"
)
# A resumed run does what earlier processes have left undone, be it more than once.
NOT_DONE_SQL = (
    "SELECT count(DISTINCT coalesce(symbol, rowid)) FROM failures WHERE reason = ?1 AND coalesce(symbol NOT IN"
    " (SELECT symbol FROM measurements WHERE purpose = 'sample'"
    " UNION SELECT symbol FROM failures WHERE symbol IS NOT NULL AND reason <> ?1), 1)"
)
CALIBRATIONS_SQL = (
    "SELECT task, device, epoch, factor, spread, noise, schedules, furthest, times_ms FROM calibrations ORDER BY rowid"
)
_T = TypeVar("_T")
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class CalibrationRow:
    """How times of a device in an epoch compare with the run's scale.

    Attributes:
        times: reference schedule → its time there.
    """

    task_index: int
    device: str
    epoch: str
    board: BoardFactor
    times: Mapping[str, ReferenceTime]


def read_database(path: Path, read: Callable[[sqlite3.Connection], _T]) -> _T:
    """What `read` returns for the database; it is called again if a run begins to write meanwhile.

    Raises:
        sqlite3.Error: the file is not a database, is damaged, or cannot be read. And whatever `read` raises.
    """
    before = _resting_state(path)
    if before is not None:
        # Nobody writes. Opened as usual, SQLite would still create two files for writers and leave them there.
        try:
            found = _read(path, "mode=ro&immutable=1", read)
        except Exception:
            if _resting_state(path) == before:
                raise
        else:
            if _resting_state(path) == before:
                return found
    try:
        return _read(path, "mode=ro", read)
    except sqlite3.OperationalError:
        # The folder has no write permission.
        return _read(path, "mode=ro&immutable=1", read)


def _resting_state(path: Path) -> tuple[int, int] | None:
    """Changes when something is written; None if a writer's log lies beside the file, or the file is missing."""
    if path.with_name(f"{path.name}-wal").exists():
        return None
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def _read(path: Path, mode: str, read: Callable[[sqlite3.Connection], _T]) -> _T:
    uri = f"{path.absolute().as_uri()}?{mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE_S)) as connection:
        return read(connection)


def check_schema_version(path: Path, version: int) -> None:
    """Refuse a database that another version of the SDK wrote.

    Raises:
        RunFolderError: it has another schema version.
    """
    if not version:
        raise RunFolderError(
            f"{path} is empty or damaged.", next_step="Restore it from a copy of the run folder, or start a new run."
        )
    if version != SCHEMA_VERSION:
        raise RunFolderError(
            f"{path} has schema version {version}; this SDK reads version {SCHEMA_VERSION}.",
            next_step="Use the SDK version that made the run folder, or start a new run.",
        )


def scale_row(_order: int, task_index: object, device: object, reference_ms: object) -> tuple[int, str, float]:
    """A row of `SCALES_SQL`.

    Raises:
        ValueError, TypeError: a value is damaged.
    """
    return int(str(task_index)), str(device), positive(reference_ms)


def scales_of(rows: Iterable[tuple[int, str, float]]) -> dict[int, RunScale]:
    """Argument set → its scale, from rows of `SCALES_SQL`."""
    devices: dict[int, str] = {}
    times_ms: dict[int, list[float]] = {}
    for task_index, device, reference_ms in rows:
        if devices.setdefault(task_index, device) == device:
            times_ms.setdefault(task_index, []).append(reference_ms)
    return {task_index: RunScale(devices[task_index], several) for task_index, several in times_ms.items()}


def settled(timings: Iterable[tuple[str, Measured]], scales: Mapping[int, RunScale]) -> list[Measured]:
    """Every measured candidate, in the order of timing; a leader has the time that its race, or what came after that,
    has settled.

    Args:
        timings: see `timing_of`.
        scales: see `scales_of`.

    Raises:
        ValueError: an argument set has ratios and no scale.
    """
    found: dict[str, Measured] = {}
    again_ms: dict[str, dict[str, list[float]]] = {purpose: {} for purpose in CANDIDATE_PURPOSES[1:]}
    for purpose, timed in timings:
        one = timed
        if timed.is_relative:
            if timed.candidate.task_index not in scales:
                raise ValueError(f"the time of the reference of argument set {timed.candidate.task_index} is missing")
            reference_ms = scales[timed.candidate.task_index].settled_ms
            one = replace(timed, median_ms=timed.median_ms * reference_ms, spread_ms=timed.spread_ms * reference_ms)
        if purpose not in again_ms:
            found[one.candidate.symbol] = one
        elif not one.is_disturbed:
            again_ms[purpose].setdefault(one.candidate.symbol, []).append(one.median_ms)
    for purpose, timed_again in again_ms.items():
        for symbol, times_ms in timed_again.items():
            found[symbol] = replace(
                found[symbol],
                median_ms=mean_ms(times_ms),
                processes=len(times_ms),
                is_disturbed=False,
                is_timed_anew=purpose == "confirmation",
            )
    return list(found.values())


def timing_of(samples: Path, purpose: str, *row: Any) -> tuple[str, Measured]:
    """The purpose and the candidate of a row of `MEASURED_SQL`; its times are multiples of the reference's if paired.

    Args:
        samples: the run's samples/ folder.

    Raises:
        ValueError, TypeError, AttributeError: a value is damaged.
    """
    median_ms, spread_ms, factor, clock, device, canary_s, at_unix_s, relative, is_disturbed = row[14:]
    time = positive(median_ms) * positive(factor) if relative is None else positive(relative)
    return purpose, Measured(
        candidate_of(samples, *row[:14]),
        median_ms=time,
        spread_ms=float(spread_ms) / positive(median_ms) * time,
        clock=str(clock),
        device=str(device),
        canary_s=tuple(float(value) for value in json.loads(canary_s)),
        at_unix_s=float(at_unix_s),
        is_relative=relative is not None,
        is_disturbed=bool(is_disturbed),
    )


def candidate_of(samples: Path, *row: Any) -> Candidate:
    """The candidate of a row with `CANDIDATE_COLUMNS`; see `timing_of`."""
    round_index, task_index, sample_index = map(int, row[:3])
    symbol, sha256, search_s, predicted_ms, origin_text, seed, beam_size, dropout, noise = row[3:12]
    parameters, lineage = row[12:]
    origin = Origin(origin_text)
    folder = (samples / sample_name(round_index, task_index, sample_index)).parent
    weights = samples / "default.weights" if is_default(round_index, origin) else folder / "used.weights"
    point: Point
    values = {str(key): str(value) for key, value in json.loads(parameters or "{}").items()}
    if lineage is not None:
        told = json.loads(lineage)
        parents, moves = tuple(map(str, told["parents"])), tuple(map(str, told["moves"]))
        point = SchedulePoint(origin, parents, moves, values, str(told.get("technique", "")))
    elif seed is None:
        point = ParameterPoint(origin, values)
    else:
        point = SearchPoint(origin, int(seed), int(beam_size), int(dropout), weights, float(noise), values)
    predicted = None if predicted_ms is None else float(predicted_ms)
    return Candidate(round_index, task_index, sample_index, str(symbol), point, str(sha256), float(search_s), predicted)


def positive(value: object) -> float:
    """A time or a factor.

    Raises:
        ValueError: it is not a number above 0.
    """
    number = float(str(value))
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"a time or factor is {number}")
    return number


def calibration_of(*row: Any) -> CalibrationRow:
    """The calibration of a row of `CALIBRATIONS_SQL`.

    Raises:
        ValueError, TypeError, AttributeError: a value is damaged.
    """
    task_index, device, epoch, factor, spread, noise, schedules, furthest, times_ms = row
    times = {name: ReferenceTime(float(m), float(s)) for name, (m, s) in json.loads(times_ms).items()}
    board = BoardFactor(float(factor), float(spread), float(noise), int(schedules), str(furthest))
    return CalibrationRow(int(task_index), str(device), str(epoch), board, times)


def shares_row(symbol: object, text: object) -> tuple[str, dict[str, float]]:
    """A schedule, and the share of each Func, by its name in Halide, of a call's time.

    Raises:
        ValueError, TypeError, AttributeError: the row is damaged.
    """
    return str(symbol), {str(name): float(share) for name, share in json.loads(str(text)).items()}
