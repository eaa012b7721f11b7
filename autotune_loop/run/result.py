"""The result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from halide_autotune.autotune_loop.play_off.verdict import Verdict
from halide_autotune.autotune_loop.store.published import NOTHING, OWN, Published, ScheduleTime
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule
from halide_autotune.targets.values.records import plain


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
        parameters: the generator's.
        generator: its registered name.
        default_description: how the default schedule was made.
        header: `best.<name>.schedule.h`; None if nothing could be timed, or the default not yet, or parameters are
            tuned.
        published: which schedule that is, with its figures.
        verdict: what the play-off says; None where none was held.
        parameters_file: `best.<name>.parameters.toml`, where parameters are tuned; else as `header`.
        size_schedules: what is used at each size; empty with one size, or where that was not decided.
    """

    parameters: Mapping[str, str]
    generator: str
    default_description: str
    header: Path | None = None
    published: Published = NOTHING
    verdict: Verdict | None = None
    parameters_file: Path | None = None
    size_schedules: tuple[SizeSchedule, ...] = ()

    @property
    def is_published(self) -> bool:
        """Whether there is a winner in the run's folder."""
        return self.header is not None or self.parameters_file is not None

    @property
    def keeps_own(self) -> bool:
        """Whether the generator's own schedule stays, so that there is nothing to use in its place."""
        return self.published.sample == OWN and not self.is_published

    @property
    def tuned_parameters(self) -> Mapping[str, str]:
        """The winner's values of the tuned parameters; empty where none are tuned."""
        return self.published.parameters

    @property
    def sample(self) -> str:
        """Which schedule won; 'default' or 'incumbent' when that stays."""
        return self.published.sample

    @property
    def confirmed(self) -> bool:
        """Whether a play-off was held to its end and says that it ships."""
        return self.published.confirmed

    @property
    def default(self) -> ScheduleTime | None:
        """The default's time; None if it was not timed."""
        return self.published.default

    @property
    def tuned(self) -> ScheduleTime | None:
        """The winner's time; None if it was not timed."""
        return self.published.tuned

    @property
    def default_ms(self) -> float | None:
        """The default's median time."""
        return None if self.default is None else self.default.median_ms

    @property
    def untuned_ms(self) -> float | None:
        """The median time without tuning: of the generator's own schedule if it has one, else of the default."""
        own = self.published.own
        return self.default_ms if own is None else own.median_ms

    @property
    def tuned_ms(self) -> float | None:
        """The winner's median time."""
        return None if self.tuned is None else self.tuned.median_ms

    @property
    def speed_up(self) -> float | None:
        """How many times as fast the winner is as what it had to beat, estimated from the paired turns of the play-off.

        So it may differ from the ratio of the two medians. 1 where the default or the incumbent stays.
        """
        return None if self.published.speed_up is None else self.published.speed_up.times

    @property
    def by_device(self) -> Mapping[str, tuple[float | None, float]]:
        """Device → default and tuned time on it, in milliseconds; empty where they were not confirmed."""
        return self.published.by_device

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form, with the times side by side."""
        return {
            "parameters": dict(self.parameters),
            "generator": self.generator,
            "default_description": self.default_description,
            "header": None if self.header is None else str(self.header),
            "parameters_file": None if self.parameters_file is None else str(self.parameters_file),
            **self.published.to_dict(),
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
            "size_schedules": [schedule.to_dict() for schedule in self.size_schedules],
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


def run_totals(database: RunDatabase, duration_s: float) -> RunTotals:
    """What a run has done; `duration_s` is of this part of it."""
    return RunTotals(
        rounds=database.next_round(),
        samples_timed=len(database.measured()),
        failures=database.failure_counts(),
        not_done=database.not_done_count(),
        stages_s=database.stage_totals_s(),
        duration_s=duration_s,
        incidents=database.incident_counts(),
    )


def device_use(database: RunDatabase) -> tuple[DeviceUse, ...]:
    """The devices that a run has used, and how their times compare."""
    used, boards = database.device_use(), database.board_factors()
    rows = []
    for name in dict.fromkeys([*used, *boards]):
        board = boards.get(name)
        told = () if board is None else (board.factor, board.spread, board.fits)
        rows.append(DeviceUse(name, *used.get(name, (0, 0.0)), *told))
    return tuple(rows)
