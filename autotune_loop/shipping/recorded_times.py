"""The times of a shipped schedule, from its run's database."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune_loop.candidate import Origin, is_default
from autotune_loop.store.read_database import read_database
from targets.errors import RunFolderError, os_error_as


def verdict_words(verdict: Mapping[str, Any], *, against_incumbent: bool = False) -> str:
    """'faster: 1.250 times as fast (95 percent interval 1.200 to 1.310)', from a verdict's JSON form.

    Args:
        against_incumbent: it was compared with the header in use, not with the default.

    Raises:
        KeyError, TypeError, ValueError, ZeroDivisionError: it is not a verdict.
    """
    reason, estimate = str(verdict["reason"]), verdict["estimate"]
    if estimate is None:
        return reason
    low = "0" if estimate["high"] is None else f"{1 / float(estimate['high']):.3f}"
    high = "inf" if estimate["low"] is None else f"{1 / float(estimate['low']):.3f}"
    compared = "as fast as the header that was in use" if against_incumbent else "as fast"
    return f"{reason}: {1 / float(estimate['ratio']):.3f} times {compared} (95 percent interval {low} to {high})"


_SAMPLE = re.compile(
    r"\bfor (?:batch_(?P<round>\d{1,9})_(?P<task>\d{1,9})/(?P<sample>\d{1,9})"
    r"|(?P<kind>default|reference|rival))\b"
)
_PLAY_OFF = "play-off"
_MAXIMUM_TEXT_BYTES = 2**16
# A normal distribution's standard deviation for each median distance from the median.
_DEVIATION_OF_MEDIAN_DISTANCE = 1.4826
_END_OF_DATES_UNIX_S = 253402300800.0


@dataclass(frozen=True)
class RecordedTime:
    """A schedule's time on the run's first device.

    Attributes:
        spread_ms: robust standard deviation between the turns of the play-off, or within the only timing.
        low_ms, high_ms: the fastest and the slowest turn; expect later processes between them. Equal to the median if
            it was timed once.
    """

    median_ms: float
    spread_ms: float
    low_ms: float
    high_ms: float


@dataclass(frozen=True)
class RecordedTimes:
    """The measurements of one argument set.

    Attributes:
        default: of the schedule without tuning; None if it has no time.
        confirmed: the times are from the play-off.
        clock: 'wall', or the name of a clock that is not a device's.
        samples: schedules timed.
        weights_sha256: of the newest accepted weights; None without any.
        tuned_unix_s: when the last measurement was recorded.
        verdict: of the play-off, in words; empty without one.
    """

    tuned: RecordedTime
    default: RecordedTime | None
    confirmed: bool
    clock: str
    samples: int
    weights_sha256: str | None
    tuned_unix_s: float
    verdict: str


def read_recorded_times(folder: Path, name: str, function_name: str, task_index: int) -> RecordedTimes:
    """The times of best.<name>.schedule.h in the run folder.

    Raises:
        RunFolderError: the database or the note beside the header is missing or damaged, or an incumbent has won.
    """
    note = folder / "samples" / f"best.{name}.benchmark.txt"
    next_step = "Finish the run with --resume, or tune again."
    with os_error_as(RunFolderError, f"{note} cannot be read", next_step=next_step), note.open("rb") as file:
        text = file.read(_MAXIMUM_TEXT_BYTES).decode("utf-8", "replace")
    if "incumbent" in text.partition("\n")[0]:
        raise RunFolderError(
            f"{folder} has nothing new to ship for {name}: the header in use is still the best.",
            next_step="Keep that header, or tune longer.",
        )
    found = _SAMPLE.search(text)
    if found is None:
        raise RunFolderError(
            f"{note} is damaged: expected the time of a sample such as batch_0_0/3.", next_step="Tune again."
        )
    path, next_step = folder / "tuning.db", "Ship another run, or tune again."
    if not path.is_file():
        raise RunFolderError(f"{path} is missing: it has the run's measurements.", next_step=next_step)
    try:
        return read_database(path, lambda database: _times(database, found, function_name, task_index))
    except (
        sqlite3.Error,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise RunFolderError(f"{path} is damaged: {error}.", next_step=next_step) from error


def _symbol(database: sqlite3.Connection, found: re.Match[str], function_name: str, task_index: int) -> str:
    kind = found["kind"]
    if kind == "default":
        symbol = _default_symbol(database, task_index)
    elif kind is not None:
        symbol = f"{function_name}_{kind}_a{task_index}"
    else:
        row = database.execute(
            "SELECT symbol FROM candidates WHERE round=? AND task=? AND sample=?",
            (int(found["round"]), int(found["task"]), int(found["sample"])),
        ).fetchone()
        symbol = None if row is None else str(row[0])
    if symbol is None:
        raise ValueError(f"it has no candidate {found[0].removeprefix('for ')}, which the best header is for")
    return symbol


def _default_symbol(database: sqlite3.Connection, task_index: int) -> str | None:
    rows = database.execute(
        "SELECT symbol, round, origin FROM candidates WHERE task=? AND symbol IN (SELECT symbol FROM measurements)"
        " ORDER BY round, sample",
        (task_index,),
    )
    return next((str(symbol) for symbol, round_index, origin in rows if is_default(round_index, Origin(origin))), None)


def _times(database: sqlite3.Connection, found: re.Match[str], function_name: str, task_index: int) -> RecordedTimes:
    symbol = _symbol(database, found, function_name, task_index)
    rows = database.execute(
        "SELECT purpose, device, clock, at_unix_s FROM measurements WHERE symbol=? ORDER BY rowid", (symbol,)
    ).fetchall()
    if not rows:
        raise ValueError(f"it has no time of {symbol}, which the best header is for")
    verdict = _verdict(database, task_index)
    turns = int(verdict.get("turns", 0))
    purpose = _PLAY_OFF if turns > 0 else str(rows[0][0])
    device = next((str(row[1]) for row in rows if row[0] == purpose), "")
    tuned = _time(database, symbol, device, purpose, turns)
    if tuned is None:
        raise ValueError(f"it has no time of {symbol} in the play-off")
    default_symbol = _default_symbol(database, task_index)
    default_purpose = _PLAY_OFF if turns > 0 else "sample"
    samples = database.execute(
        "SELECT count(DISTINCT m.symbol) FROM measurements m JOIN candidates c ON c.symbol = m.symbol"
        " WHERE c.task=? AND m.purpose='sample'",
        (task_index,),
    ).fetchone()[0]
    weights = database.execute("SELECT sha256 FROM weights WHERE accepted=1 ORDER BY rowid DESC LIMIT 1").fetchone()
    return RecordedTimes(
        tuned=tuned,
        default=None if default_symbol is None else _time(database, default_symbol, device, default_purpose, turns),
        confirmed=turns > 0,
        clock=str(rows[0][2]),
        samples=int(samples),
        weights_sha256=None if weights is None else str(weights[0]),
        tuned_unix_s=_checked(max(float(row[3]) for row in rows), 0.0, _END_OF_DATES_UNIX_S, "moment"),
        verdict=_words(verdict, symbol, default_symbol),
    )


def _words(verdict: Mapping[str, Any], symbol: str, default_symbol: str | None) -> str:
    if not verdict:
        return ""
    baseline = verdict.get("baseline")
    if baseline == symbol:
        return f"this is the default schedule; its best challenger was {verdict_words(verdict)}"
    return verdict_words(verdict, against_incumbent=bool(baseline) and baseline != default_symbol)


def _verdict(database: sqlite3.Connection, task_index: int) -> dict[str, Any]:
    """The verdict of the newest play-off; empty without one."""
    row = database.execute(
        "SELECT verdict FROM verdicts WHERE task=? ORDER BY rowid DESC LIMIT 1", (task_index,)
    ).fetchone()
    return {} if row is None else dict(json.loads(row[0]))


def _time(database: sqlite3.Connection, symbol: str, device: str, purpose: str, turns: int) -> RecordedTime | None:
    """The median of the turns that decided; those that chose the winner would flatter it."""
    rows = database.execute(
        "SELECT median_ms, spread_ms FROM measurements WHERE symbol=? AND device=? AND purpose=?"
        " ORDER BY rowid DESC LIMIT ?",
        (symbol, device, purpose, max(turns, 1)),
    ).fetchall()
    if not rows:
        return None
    medians_ms = [_checked(float(row[0]), math.ulp(0.0), math.inf, "time") for row in rows]
    middle_ms = statistics.median(medians_ms)
    spread_ms = (
        _spread(medians_ms, middle_ms) if len(rows) > 1 else _checked(float(rows[0][1]), 0.0, math.inf, "spread")
    )
    return RecordedTime(middle_ms, spread_ms, min(medians_ms), max(medians_ms))


def _checked(value: float, least: float, end: float, what: str) -> float:
    if not least <= value < end:
        raise ValueError(f"{value} is not a {what}")
    return value


def _spread(values: Sequence[float], middle: float) -> float:
    return _DEVIATION_OF_MEDIAN_DISTANCE * statistics.median(abs(value - middle) for value in values)
