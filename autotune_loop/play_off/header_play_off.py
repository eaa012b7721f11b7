"""A play-off of schedule headers outside a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autotune_loop.deadline import Deadline
from autotune_loop.measure.kernel_bench import BenchPlan, KernelBench, Progress, open_kernel_bench
from autotune_loop.play_off.course import Contender, PlayOffCourse, PlayOffResult, Turn
from autotune_loop.play_off.times import DeviceTimes, ProcessTime
from autotune_loop.play_off.verdict import Verdict, VerdictReason
from autotune_loop.specification.objective import Objective
from devices.timing.measurement import MeasureFailureReason, Measurement


@dataclass(frozen=True)
class HeaderPlayOff:
    """Which of several schedules ships.

    Attributes:
        labels: of the schedules, in the given order.
        winner: the position of the one that ships; None if nothing could be timed.
        verdict: names schedules by their labels.
        times: for each schedule, device → its times; empty for one that failed.
        clock: the clock of the times; empty if nothing was timed.
        failures: label → why it failed.
    """

    labels: tuple[str, ...]
    winner: int | None
    verdict: Verdict
    times: tuple[Mapping[str, DeviceTimes], ...]
    clock: str
    failures: Mapping[str, str]


def decide_winner(
    plan: BenchPlan,
    baseline: int | None,
    *,
    objective: Objective | None = None,
    seed: int = 0,
    budget_s: float | None = None,
    progress: Progress = lambda text: None,
) -> HeaderPlayOff:
    """Time schedules in turns on every device; the best ships if it beats the baseline with 95 % confidence.

    Args:
        plan: its schedules are the contenders; equals in order of preference.
        baseline: the position of the schedule that stays unless it is beaten, an incumbent or a default.
        budget_s: after it no further turn begins; with too few turns the verdict is 'unconfirmed'.

    Raises:
        GeneratorError: a schedule cannot be built.
        ToolchainError, DeviceError, EmulatorError: what is missing or broken.
    """
    labels = tuple(schedule.label for schedule in plan.schedules)
    with open_kernel_bench(plan, progress) as bench:
        timer = _Timer(plan, bench)
        deadline = Deadline.after(budget_s)
        result = PlayOffCourse(
            contenders=[Contender(str(place), label) for place, label in enumerate(labels)],
            baseline=None if baseline is None else str(baseline),
            objective=objective or Objective(),
            seed=seed,
            time_turn=timer,
            time_left_s=lambda: deadline.left_s,
            devices=[device.name for device in plan.devices],
            tell=lambda count, turn, turns: progress(f"play-off of {count}, turn {turn} of at most {turns}"),
        ).run()
    return _header_play_off(labels, result, timer)


@dataclass
class _Timer:
    """Times turns device by device; a schedule that fails on one is out."""

    plan: BenchPlan
    bench: KernelBench

    def __post_init__(self) -> None:
        self.clock = ""
        self.failures: dict[str, str] = {}
        self.lost_devices: dict[str, str] = {}

    def __call__(self, order: Sequence[str]) -> Turn:
        times: dict[str, dict[str, ProcessTime]] = {}
        failed: set[str] = set()
        for device in self.plan.devices:
            times[device.name] = {}
            for name in order:
                result = self.bench.measure(device, self.bench.built.symbols[int(name)])
                if isinstance(result, Measurement):
                    self.clock = result.clock.value
                    times[device.name][name] = ProcessTime.of(result)
                elif result.reason is MeasureFailureReason.DEVICE:
                    del times[device.name]
                    self.lost_devices.setdefault(device.name, result.message)
                    break
                else:
                    failed.add(name)
                    self.failures.setdefault(name, result.message)
        return Turn(times, frozenset(failed), stopped=not times)


def _header_play_off(labels: tuple[str, ...], result: PlayOffResult, timer: _Timer) -> HeaderPlayOff:
    names = {str(place): label for place, label in enumerate(labels)}
    verdict = result.verdict
    if verdict.reason is VerdictReason.UNCONFIRMED:
        # A lost device is an error here: the user can fix it and start again.
        verdict = replace(verdict, message=" ".join([verdict.message, *timer.lost_devices.values()]))
    return HeaderPlayOff(
        labels=labels,
        winner=int(verdict.winner) if verdict.winner else None,
        verdict=replace(
            verdict,
            winner=names.get(verdict.winner, ""),
            challenger=names.get(verdict.challenger, ""),
            baseline=names.get(verdict.baseline, ""),
        ),
        times=tuple(result.times.get(str(place), {}) for place in range(len(labels))),
        clock=timer.clock,
        failures={names[name]: message for name, message in timer.failures.items()},
    )
