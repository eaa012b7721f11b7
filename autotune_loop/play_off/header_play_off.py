"""A play-off of schedule headers outside a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.measure.kernel_bench import BenchPlan, KernelBench, Progress, open_kernel_bench
from halide_autotune.autotune_loop.play_off.course import PlayOffCourse, Turn
from halide_autotune.autotune_loop.play_off.times import DeviceTimes, ProcessTime, turn_settings
from halide_autotune.autotune_loop.play_off.verdict import Verdict, VerdictReason, least_gain_by
from halide_autotune.autotune_loop.specification.objective import Objective
from halide_autotune.devices.timing.measurement import MeasureFailureReason, Measurement, ReshapedOutput


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
        reshaped: label → the outputs of which it computes more or less than the reference.
    """

    labels: tuple[str, ...]
    winner: int | None
    verdict: Verdict
    times: tuple[Mapping[str, DeviceTimes], ...]
    clock: str
    failures: Mapping[str, str]
    reshaped: Mapping[str, tuple[ReshapedOutput, ...]]


def decide_winner(
    plan: BenchPlan,
    *,
    objective: Objective,
    seed: int = 0,
    budget_s: float | None,
    progress: Progress,
) -> HeaderPlayOff:
    """Time schedules in turns on every device; the best ships if it beats the first with 95 % confidence.

    Args:
        plan: its schedules are the contenders; the others are equals in order of preference.
        budget_s: after it no further turn begins; with too few turns the verdict is 'unconfirmed'.

    Raises:
        GeneratorError: a schedule cannot be built.
        ToolchainError, DeviceError, EmulatorError: what is missing or broken.
    """
    labels = tuple(schedule.label for schedule in plan.schedules)
    with open_kernel_bench(plan, progress) as bench:
        timer = _Timer(bench)
        deadline = Deadline.after(budget_s)
        contenders = dict(zip(bench.built.symbols, labels, strict=True))
        result = PlayOffCourse(
            contenders=contenders,
            baseline=bench.built.symbols[0],
            objective=objective,
            seed=seed,
            time_turn=timer,
            time_left_s=lambda: deadline.left_s,
            devices=[device.name for device in plan.devices],
            least_gain=least_gain_by(plan.devices[0].clock),
            tell=lambda count, turn, turns: progress(f"play-off of {count}, turn {turn} of at most {turns}"),
        ).run()
    verdict = result.verdict
    if verdict.reason is VerdictReason.UNCONFIRMED:
        # A lost device is an error here: the user can fix it and start again.
        verdict = replace(verdict, message=" ".join([verdict.message, *timer.lost_devices.values()]))
    return HeaderPlayOff(
        labels=labels,
        winner=list(contenders).index(verdict.winner) if verdict.winner else None,
        verdict=replace(
            verdict,
            winner=contenders.get(verdict.winner, ""),
            challenger=contenders.get(verdict.challenger, ""),
            baseline=contenders.get(verdict.baseline, ""),
        ),
        times=tuple(result.times.get(symbol, {}) for symbol in contenders),
        clock=timer.clock,
        failures={contenders[symbol]: message for symbol, message in timer.failures.items()},
        reshaped={contenders[symbol]: outputs for symbol, outputs in timer.reshaped.items()},
    )


@dataclass
class _Timer:
    """Times turns device by device; a schedule that fails on one is out."""

    bench: KernelBench
    clock: str = ""
    failures: dict[str, str] = field(default_factory=dict)
    lost_devices: dict[str, str] = field(default_factory=dict)
    reshaped: dict[str, tuple[ReshapedOutput, ...]] = field(default_factory=dict)

    def __call__(self, order: Sequence[str], yardstick: str | None) -> Turn:
        times: dict[str, dict[str, ProcessTime]] = {}
        failed: set[str] = set()
        for device in self.bench.plan.devices:
            times[device.name] = {}
            for name in order:
                result = self.bench.measure(device, name, turn_settings(self.bench.plan.settings, name, yardstick))
                if isinstance(result, Measurement):
                    self.clock = result.clock.value
                    self.reshaped[name] = result.reshaped
                    times[device.name][name] = ProcessTime.of(result, yardstick)
                elif result.reason is MeasureFailureReason.DEVICE:
                    del times[device.name]
                    self.lost_devices.setdefault(device.name, result.message)
                    break
                else:
                    failed.add(name)
                    self.failures.setdefault(name, result.message)
        return Turn(times, frozenset(failed), stopped=not times)
