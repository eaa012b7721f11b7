"""`sdk bench`: schedules of one generator checked and timed side by side, taking turns."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from halide_autotune.autotune_loop.measure.kernel_bench import BenchPlan, KernelBench, Progress, open_kernel_bench
from halide_autotune.devices.device import Device
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement, ReshapedOutput


@dataclass(frozen=True)
class ComparedSchedule:
    """One schedule's part in a comparison.

    Attributes:
        device: where it was timed.
        label: as the user named it.
        turns: its measurements, one a turn; empty when it failed.
        failure: why it has no time.
        reference: the autoscheduler whose output it was compared with; None when there was none.
        toolchain: what it was linked with, for people.
    """

    device: str
    label: str
    turns: tuple[Measurement, ...]
    failure: MeasureFailure | None
    reference: str | None
    toolchain: str = ""

    @property
    def median_ms(self) -> float | None:
        """Median over the turns."""
        return statistics.median(t.median_s for t in self.turns) * 1e3 if self.turns else None

    @property
    def minimum_ms(self) -> float | None:
        """The fastest single repetition."""
        return min(t.minimum_s for t in self.turns) * 1e3 if self.turns else None

    @property
    def spread_ms(self) -> float | None:
        """Robust standard deviation of the repetitions within a turn, median over the turns."""
        return statistics.median(t.spread_s for t in self.turns) * 1e3 if self.turns else None

    @property
    def reshaped(self) -> tuple[ReshapedOutput, ...]:
        """The outputs of which it computes more or less than the reference."""
        return self.turns[0].reshaped if self.turns else ()

    @property
    def repetitions(self) -> int:
        """All that were timed."""
        return sum(len(t.repetitions_s) for t in self.turns)


def compare_schedules(plan: BenchPlan, turns: int, progress: Progress) -> list[ComparedSchedule]:
    """Build every schedule and an independent reference, then check and time them in turns on each device.

    Raises:
        GeneratorError: no schedule can be built, or one that the plan needs.
        ToolchainError, DeviceError, EmulatorError: what is missing or broken.
    """
    with open_kernel_bench(plan, progress) as bench:
        return [result for device in plan.devices for result in _time(bench, device, turns)]


def _time(bench: KernelBench, device: Device, turns: int) -> list[ComparedSchedule]:
    timed: dict[str, list[Measurement]] = {symbol: [] for symbol in bench.built.symbols}
    failures = {
        symbol: MeasureFailure(symbol, device.name, MeasureFailureReason.HALIDE_ERROR, message, "")
        for symbol, message in bench.built.failures.items()
    }
    for turn in range(turns):
        for symbol in bench.built.symbols:
            if symbol in failures:
                continue
            bench.progress(f"timing on {device.name}, turn {turn + 1} of {turns}")
            result = bench.measure(device, symbol)
            if isinstance(result, Measurement):
                timed[symbol].append(result)
            else:
                failures[symbol] = result
                timed[symbol].clear()
    reference = bench.built.reference if bench.checks_outputs_on(device) else None
    toolchain = bench.plan.tools.toolchain.describe()
    return [
        ComparedSchedule(device.name, schedule.label, tuple(timed[symbol]), failures.get(symbol), reference, toolchain)
        for symbol, schedule in zip(bench.built.symbols, bench.plan.schedules, strict=True)
    ]
