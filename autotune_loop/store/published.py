"""What a run has published for an argument set: its winner and its figures, which every output repeats."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from halide_autotune.autotune_loop.specification.objective import CONFIDENCE
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.values.checks import above_zero, number
from halide_autotune.targets.values.records import Source, plain, record

# What may stay: Halide's default, the header in use, the schedule that the generator itself applies; and that schedule
# with the parameters as they were.
DEFAULT, INCUMBENT, OWN, DEFAULT_PARAMETERS = "default", "incumbent", "own", "default parameters"


def words_for(name: str) -> str:
    """What messages call what may stay; a sample by its name."""
    if name == OWN:
        return "your own schedule"
    return f"the {name}" if name in (DEFAULT, INCUMBENT, DEFAULT_PARAMETERS) else name


def timings_text(count: int) -> str:
    """What a time of the rounds is: 'one timing' or 'mean of 3 timings'."""
    return "one timing" if count == 1 else f"mean of {count} timings"


@dataclass(frozen=True)
class ScheduleTime:
    """A schedule's time on the device that a run reports.

    Attributes:
        median_ms: the median over the processes of the play-off; else of one timing, or the mean of several.
        spread_ms: robust standard deviation; between processes after a play-off.
        range_ms: the fastest and the slowest process of the play-off; None without one.
        processes: how many processes it was timed in.
        expected_ms: between which times it will be found at another moment, with 95 % confidence, unless it was timed
            in a play-off; None if nobody knows.
        by_size_ms: size → its time there, of which the other times are geometric means; empty if there is one size.
    """

    median_ms: Annotated[float, above_zero()]
    spread_ms: Annotated[float, number(0.0)]
    range_ms: tuple[float, float] | None = None
    processes: int = 1
    expected_ms: tuple[float, float] | None = None
    by_size_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """'one timing', 'mean of 3 timings' or 'play-off median of 8', with the sizes if there are several."""
        words = f"play-off median of {self.processes}" if self.range_ms is not None else timings_text(self.processes)
        return f"{words}, geometric mean of {len(self.by_size_ms)} sizes" if self.by_size_ms else words


@dataclass(frozen=True)
class SpeedUp:
    """How many times as fast a schedule is as another.

    Attributes:
        than: 'default', 'default parameters', 'incumbent' or 'own'.
        low, high: the interval with `CONFIDENCE`, of the paired turns of a play-off. Without such turns both are None;
            `high` alone is None where there is no upper bound.
    """

    times: Annotated[float, above_zero()]
    than: str
    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        """'1.050 times as fast as the default (95 % interval 1.021 to 1.080)'; two digits without an interval."""
        return self.text_than(words_for(self.than))

    def text_than(self, than: str) -> str:
        """As `text`, with other words for what it is compared with; without any if they are empty."""
        compared = f"times as fast as {than}" if than else "times as fast"
        if self.low is None:
            return f"{self.times:.2f} {compared}"
        bounds = f"at least {self.low:.3f}" if self.high is None else f"{self.low:.3f} to {self.high:.3f}"
        return f"{self.times:.3f} {compared} ({CONFIDENCE * 100:.0f} % interval {bounds})"


@dataclass(frozen=True)
class NoDefault:
    """Why the default, by which a gain is measured, has no time.

    Attributes:
        what: happened, without the names of devices and files: 'its search failed (crashed)'.
        message: more about it; may be empty.
    """

    what: str
    message: str = ""

    @property
    def reason(self) -> str:
        """What happened, with the message."""
        return f"{self.what}: {' '.join(self.message.split())}" if self.message else f"{self.what}."

    @property
    def sentence(self) -> str:
        """For the user."""
        return f"The default has no time, because {self.reason}"


@dataclass(frozen=True)
class Published:
    """The winner of an argument set, as `best.<name>.schedule.h` has it.

    Attributes:
        sample: which one won, as batch_<round>_<argset>/<sample>; 'default', 'incumbent' or 'own' when that
            stays.
        symbol: of its kernel.
        confirmed: a play-off was held to its end and says that it ships.
        reason: why, in a word or two: that of the play-off's verdict.
        message: the decision, for the user.
        tuned: its time; None for an incumbent that was not timed.
        default: of the schedule without tuning, by the same clock; None if it was not timed.
        speed_up: over what it had to beat; 1 where that stays. None if nothing was compared.
        by_device: device → default and tuned time on it, in milliseconds; empty where they were not confirmed.
        no_default: why the default has no time; None if it has one.
        parameters: values of the tuned parameters; empty where none are tuned.
        own: the time of the generator's own schedule; None if that was not timed.
    """

    sample: str
    symbol: str
    confirmed: bool
    reason: str
    message: str
    tuned: ScheduleTime | None = None
    default: ScheduleTime | None = None
    speed_up: SpeedUp | None = None
    by_device: Mapping[str, tuple[float | None, float]] = field(default_factory=dict)
    no_default: NoDefault | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    own: ScheduleTime | None = None

    @property
    def stays(self) -> bool:
        """Whether nothing has beaten the default or the incumbent."""
        has_won = self.speed_up is not None and self.speed_up.low is not None
        return self.sample in (DEFAULT, INCUMBENT, OWN) and not has_won

    @property
    def speed_up_text(self) -> str:
        """The speed-up in words, with what it is from unless that is a play-off; empty without one."""
        if self.speed_up is None or self.tuned is None:
            return ""
        return self.speed_up.text if self.speed_up.low is not None else f"{self.speed_up.text}, {self.tuned.words}"

    def note(self, clock: str) -> str:
        """The text of `best.<name>.benchmark.txt`; `clock` is that of the times."""
        if self.tuned is None:
            return f"not timed ({clock} time) for {self.sample}\n{self.message}\n"
        lines = [f"{self.tuned.median_ms:.6g} ms ({clock} time, {self.tuned.words}) for {self.sample}"]
        lines += [f"{name}={value}" for name, value in self.parameters.items()]
        if self.tuned.range_ms is not None:
            low_ms, high_ms = self.tuned.range_ms
            lines.append(f"{self.tuned.processes} processes took {low_ms:.6g} to {high_ms:.6g} ms")
        if self.tuned.expected_ms is not None:
            low_ms, high_ms = self.tuned.expected_ms
            lines.append(f"Expect {low_ms:.6g} to {high_ms:.6g} ms at another moment.")
        lines += [f"{time_ms:.6g} ms at {size}" for size, time_ms in self.tuned.by_size_ms.items()]
        lines.append(self.message)
        if self.no_default is not None:
            lines.append(self.no_default.sentence)
        elif not self.confirmed:
            lines.append(self.speed_up_text)
        return "\n".join(filter(None, lines)) + "\n"

    def row(self) -> str:
        """What the database keeps; `read_published` reads it back."""
        return json.dumps(plain(self))

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form, with the times side by side."""
        return {
            "sample": self.sample,
            "confirmed": self.confirmed,
            "message": self.message,
            "tuned_parameters": dict(self.parameters),
            **_figures("default", self.default),
            "no_default": self.no_default and self.no_default.sentence,
            **_figures("tuned", self.tuned),
            **({} if self.own is None else _figures("own", self.own)),
            "speed_up": self.speed_up and self.speed_up.times,
            "speed_up_low": self.speed_up and self.speed_up.low,
            "speed_up_high": self.speed_up and self.speed_up.high,
            "speed_up_than": self.speed_up and self.speed_up.than,
            "by_device": {device: list(times_ms) for device, times_ms in self.by_device.items()},
        }


def _figures(name: str, time: ScheduleTime | None) -> dict[str, object]:
    return {
        f"{name}_ms": time and time.median_ms,
        f"{name}_spread_ms": time and time.spread_ms,
        f"{name}_range_ms": time and time.range_ms and list(time.range_ms),
        f"{name}_processes": time and time.processes,
        f"{name}_expected_ms": time and time.expected_ms and list(time.expected_ms),
        **({f"{name}_by_size_ms": dict(time.by_size_ms)} if time and time.by_size_ms else {}),
    }


NEWEST_PUBLISHED_SQL = "SELECT header_sha256, published FROM published WHERE task=? ORDER BY rowid DESC LIMIT 1"
# Where no schedule was timed.
NOTHING = Published(sample="", symbol="", confirmed=False, reason="unconfirmed", message="")


def read_published(connection: sqlite3.Connection, path: Path, task_index: int, sha256: str) -> Published | None:
    """The figures of a published header; None if the run has not published this text.

    Args:
        path: of the database.
        sha256: of the header, read before the database: a run adds the figures first.

    Raises:
        RunFolderError: the row is damaged.
        sqlite3.Error: the database is.
    """
    row = connection.execute(
        "SELECT published FROM published WHERE task=? AND header_sha256=? ORDER BY rowid DESC LIMIT 1",
        (task_index, sha256),
    ).fetchone()
    return None if row is None else published_of(row[0], path)


def newest_published(connection: sqlite3.Connection, path: Path, task_index: int) -> tuple[str, Published] | None:
    """What a run has published last for an argument set: the SHA-256 of the file, empty if it was withdrawn.

    Returns:
        None if it has published nothing.

    Raises:
        RunFolderError, sqlite3.Error: as `read_published`.
    """
    row = connection.execute(NEWEST_PUBLISHED_SQL, (task_index,)).fetchone()
    return None if row is None else (str(row[0]), published_of(row[1], path))


def published_of(text: object, path: Path) -> Published:
    """What a row of the database at `path` says.

    Raises:
        RunFolderError: it is damaged.
    """
    source = Source(f"{path} is damaged", RunFolderError, next_step="Restore it from a copy, or start a new run.")
    return source.check(record(Published), source.json(str(text)))
