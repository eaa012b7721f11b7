"""What a run leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path


class Outcome(Enum):
    """How a run ended."""

    FINISHED = "finished"
    BUDGET_SPENT = "budget spent"
    INTERRUPTED = "interrupted"
    EXHAUSTED = "no new schedules"
    DEVICES_LOST = "no device left"


@dataclass(frozen=True)
class TunedSchedule:
    """The winner of one argument set.

    Attributes:
        header: best.<name>.schedule.h; None when nothing could be timed.
        sample: which sample won, as samples/batch_<round>_<argset>/<sample>; 'default' when none beat the default.
        default_description: how the default schedule was made.
        default_ms, tuned_ms: medians of the play-off, by the same clock; None when it was not timed.
        default_spread_ms, tuned_spread_ms: robust standard deviations.
        confirmed: the two were timed again, taking turns, before this was said.
        by_device: device → default and tuned time on it, in milliseconds; empty where they were not confirmed.
    """

    argset: Mapping[str, str]
    header: Path | None
    sample: str
    default_description: str
    default_ms: float | None
    tuned_ms: float | None
    default_spread_ms: float | None
    tuned_spread_ms: float | None
    confirmed: bool
    by_device: Mapping[str, tuple[float | None, float]] = field(default_factory=dict)

    @property
    def speed_up(self) -> float | None:
        """Default time over tuned time."""
        if self.default_ms is None or self.tuned_ms is None:
            return None
        return self.default_ms / self.tuned_ms


@dataclass(frozen=True)
class DeviceUse:
    """What a device did in a run.

    Attributes:
        timed: schedules timed on it, repetitions in the play-off included.
        held_s: seconds that they held it.
    """

    name: str
    timed: int
    held_s: float


@dataclass(frozen=True)
class TuneResult:
    """The result of `autotune`.

    Attributes:
        clock: 'wall', or 'emulated' for times that are not a device's.
        weights: samples/updated.weights: the newest accepted weights.
        failures: count by 'stage: reason'.
        not_done: candidates that were chosen and not timed because the run ended.
        stages_s: seconds by stage; stages overlap, so they may add up to more than `duration_s`.
        incidents: troubles of devices by 'device: trouble'; their schedules were handed out again.
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
    rounds: int
    samples_timed: int
    failures: Mapping[str, int]
    not_done: int
    stages_s: Mapping[str, float]
    duration_s: float
    incidents: Mapping[str, int] = field(default_factory=dict)
    devices: tuple[DeviceUse, ...] = ()

    @property
    def best(self) -> TunedSchedule:
        """The winner of the first argument set."""
        return self.tuned[0]

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form."""
        tuned = [
            {**asdict(t), "header": None if t.header is None else str(t.header), "speed_up": t.speed_up}
            for t in self.tuned
        ]
        return {
            **asdict(self),
            "outcome": self.outcome.value,
            "run_folder": str(self.run_folder),
            "weights": str(self.weights),
            "tuned": tuned,
        }
