"""The result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from autotune_loop.play_off.verdict import Verdict
from targets.values.records import plain


class Outcome(Enum):
    """How a run ended."""

    FINISHED = "finished"
    BUDGET_SPENT = "budget spent"
    INTERRUPTED = "interrupted"
    EXHAUSTED = "no new schedules"
    DEVICES_LOST = "no device left"


@dataclass(frozen=True)
class ScheduleTime:
    """A schedule's time on the device that a run reports.

    Attributes:
        spread_ms: robust standard deviation; between processes after a play-off.
        range_ms: the fastest and the slowest process of the play-off; None without one.
    """

    median_ms: float
    spread_ms: float
    range_ms: tuple[float, float] | None = None


@dataclass(frozen=True)
class TunedSchedule:
    """The winner of one tuning task: a generator with one argument set.

    Attributes:
        parameters: the generator's.
        generator: its registered name.
        header: best.<name>.schedule.h; None if nothing could be timed.
        sample: which sample won, as samples/batch_<round>_<argset>/<sample>; 'default' or 'incumbent' when that stays.
        default_description: how the default schedule was made.
        default, tuned: times of the play-off, by the same clock; None when it was not timed.
        confirmed: a play-off was held to its end, and `verdict` says who ships.
        by_device: device → default and tuned time on it, in milliseconds; empty where they were not confirmed.
        verdict: what the play-off says; None where none was held.
    """

    parameters: Mapping[str, str]
    generator: str
    default_description: str
    header: Path | None = None
    sample: str = ""
    default: ScheduleTime | None = None
    tuned: ScheduleTime | None = None
    confirmed: bool = False
    by_device: Mapping[str, tuple[float | None, float]] = field(default_factory=dict)
    verdict: Verdict | None = None

    @property
    def default_ms(self) -> float | None:
        """The default's median time."""
        return None if self.default is None else self.default.median_ms

    @property
    def tuned_ms(self) -> float | None:
        """The winner's median time."""
        return None if self.tuned is None else self.tuned.median_ms

    @property
    def speed_up(self) -> float | None:
        """Default time over tuned time."""
        if self.default is None or self.tuned is None:
            return None
        return self.default.median_ms / self.tuned.median_ms

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form, with the times side by side."""
        fields = plain(self)
        default, tuned = fields.pop("default"), fields.pop("tuned")
        return {
            **fields,
            "default_ms": self.default_ms,
            "default_spread_ms": default and default["spread_ms"],
            "tuned_ms": self.tuned_ms,
            "tuned_spread_ms": tuned and tuned["spread_ms"],
            "tuned_range_ms": tuned and tuned["range_ms"],
            "speed_up": self.speed_up,
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
        }


@dataclass(frozen=True)
class DeviceUse:
    """What a device did in a run.

    Attributes:
        timed: schedules timed on it, repetitions in the play-off included.
        held_s: seconds that they held it.
        factor: what its times are multiplied with to compare with the first board's; None where nothing told.
        factor_spread: how far the furthest of the reference schedules is from that, as a share.
        fits: its times can be compared; one that does not fit was left out.
    """

    name: str
    timed: int
    held_s: float
    factor: float | None = None
    factor_spread: float | None = None
    fits: bool = True


@dataclass(frozen=True)
class RunTotals:
    """What a run has done, with the parts before it was resumed.

    Attributes:
        failures: count by 'stage: reason'.
        not_done: candidates that were chosen and not timed because the run ended.
        incidents: troubles of devices by 'device: trouble'; their schedules were handed out again.
        stages_s: seconds by stage; stages overlap, so they may add up to more than `duration_s`.
        duration_s: of this part of the run.
    """

    rounds: int
    samples_timed: int
    failures: Mapping[str, int]
    not_done: int
    stages_s: Mapping[str, float]
    duration_s: float
    incidents: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TuneResult:
    """The result of `autotune`.

    Attributes:
        clock: 'wall'; or 'simulated' or 'emulated', for times that are not a device's.
        weights: samples/updated.weights: the newest accepted weights.
        devices: what every device did.
    """

    outcome: Outcome
    generator: str
    target: str
    device: str
    clock: str
    tuned: tuple[TunedSchedule, ...]
    run_folder: Path
    weights: Path
    totals: RunTotals
    devices: tuple[DeviceUse, ...] = ()

    @property
    def best(self) -> TunedSchedule:
        """The winner of the first argument set."""
        return self.tuned[0]

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form, with the totals beside the rest."""
        fields = plain(self)
        totals = fields.pop("totals")
        return {**fields, **totals, "tuned": [tuned.to_dict() for tuned in self.tuned]}
