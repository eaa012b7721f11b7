"""What a run leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path

from autotune_loop.play_off.verdict import Verdict


class Outcome(Enum):
    """How a run ended."""

    FINISHED = "finished"
    BUDGET_SPENT = "budget spent"
    INTERRUPTED = "interrupted"
    EXHAUSTED = "no new schedules"
    DEVICES_LOST = "no device left"


@dataclass(frozen=True)
class TunedSchedule:
    """The winner of one tuning task: a generator with one argument set.

    Attributes:
        generator: its registered name.
        header: best.<name>.schedule.h; None when nothing could be timed.
        sample: which sample won, as samples/batch_<round>_<argset>/<sample>; 'default' or 'incumbent' when that stays.
        default_description: how the default schedule was made.
        default_ms, tuned_ms: medians of the play-off, by the same clock; None when it was not timed.
        default_spread_ms, tuned_spread_ms: robust standard deviations; between processes where a play-off was held.
        confirmed: a play-off was held to its end, and `verdict` says who ships.
        by_device: device → default and tuned time on it, in milliseconds; empty where they were not confirmed.
        tuned_range_ms: the fastest and the slowest of the play-off's processes; None where there was none.
        verdict: what the play-off says; None where none was held.
    """

    parameters: Mapping[str, str]
    header: Path | None
    sample: str
    default_description: str
    default_ms: float | None
    tuned_ms: float | None
    default_spread_ms: float | None
    tuned_spread_ms: float | None
    confirmed: bool
    by_device: Mapping[str, tuple[float | None, float]] = field(default_factory=dict)
    tuned_range_ms: tuple[float, float] | None = None
    verdict: Verdict | None = None
    generator: str = ""

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
class TuneResult:
    """The result of `autotune`.

    Attributes:
        clock: 'wall'; or 'simulated' or 'emulated', for times that are not a device's.
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
            {
                **asdict(t),
                "header": None if t.header is None else str(t.header),
                "speed_up": t.speed_up,
                "verdict": None if t.verdict is None else t.verdict.to_dict(),
            }
            for t in self.tuned
        ]
        return {
            **asdict(self),
            "outcome": self.outcome.value,
            "run_folder": str(self.run_folder),
            "weights": str(self.weights),
            "tuned": tuned,
        }
