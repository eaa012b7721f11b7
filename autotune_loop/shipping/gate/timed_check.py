"""A committed schedule in turns with what it is faster than, until it is known whether it is as fast as it says."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.play_off.times import ProcessTime
from halide_autotune.autotune_loop.play_off.verdict import sentence
from halide_autotune.autotune_loop.shipping.gate.checked_schedule import CheckedSchedule, GateVerdict
from halide_autotune.autotune_loop.shipping.gate.promise import Promise, speed_up_now
from halide_autotune.autotune_loop.specification.objective import LOOKS
from halide_autotune.autotune_loop.store.published import SpeedUp, words_for
from halide_autotune.devices.device import Device
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement


@dataclass
class TimedCheck:
    """Times a schedule on one device; call `run` once.

    Attributes:
        other, schedule: names of the two kernels; the first is what the promise compares with.
        unbuilt: the name of a kernel → why it cannot be built.
        time: times the kernel that is named first beside the other one, or alone.
        promise: what the header says.
        checked: what is known of the schedule.
        tolerance: how much more of the other's time it may take, as a share of what it took.
        time_left_s: after it no further turn begins.
        tell: called with a phrase before each turn.
    """

    device: Device
    other: str
    schedule: str
    unbuilt: Mapping[str, str]
    time: Callable[[str, str | None], Measurement | MeasureFailure]
    promise: Promise
    checked: CheckedSchedule
    tolerance: float
    time_left_s: Callable[[], float]
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        self._log_ratios: list[float] = []
        self._times_s: list[float] = []

    def run(self) -> CheckedSchedule:
        """Do turns, and decide after 8, 16, 32 and 64 of them; by a clock without noise after one.

        Raises:
            DeviceError: the device cannot be used.
        """
        if self.schedule in self.unbuilt:
            return self._ended(GateVerdict.STALE, f"It cannot be built: {self.unbuilt[self.schedule]}")
        order = random.Random(0)
        for look in LOOKS if self.device.clock.is_noisy else (1,):
            while len(self._times_s) < look and self.time_left_s() > 0:
                self.tell(f"{self.checked.header} on {self.device.name}, turn {len(self._times_s) + 1}")
                failed = self._turn(order.random() < 0.5)
                if failed is not None:
                    return self._failed(failed)
            if not self._log_ratios or len(self._times_s) < look:
                break
            kept = self.promise.is_kept(self._speed_up, self.tolerance)
            if kept is not None:
                return self._ended(GateVerdict.KEPT) if kept else self._ended(GateVerdict.SLOWER, self._slower())
        return self._ended(GateVerdict.UNDECIDED, self._undecided())

    @property
    def _has_other(self) -> bool:
        return self.promise.speed_up is not None and self.other not in self.unbuilt

    def _turn(self, is_other_first: bool) -> MeasureFailure | None:
        """Time each once, the schedule beside the other; returns the failure of one."""
        yardstick = self.other if self._has_other else None
        names = [self.schedule] if yardstick is None else [self.schedule, yardstick]
        times: dict[str, ProcessTime] = {}
        for name in reversed(names) if is_other_first else names:
            result = self.time(name, yardstick if name == self.schedule else None)
            if isinstance(result, MeasureFailure):
                return result
            times[name] = ProcessTime.of(result, yardstick)
        self._times_s.append(times[self.schedule].median_s)
        if yardstick is not None:
            self._log_ratios.append(math.log(times[self.schedule].compared / times[yardstick].compared))
        return None

    def _failed(self, failure: MeasureFailure) -> CheckedSchedule:
        if failure.reason is MeasureFailureReason.DEVICE:
            return self._ended(GateVerdict.NO_DEVICE, failure.message)
        if failure.kernel == self.other:
            return self._ended(GateVerdict.UNDECIDED, f"{sentence(self._its_name)} failed: {failure.message}")
        return self._ended(GateVerdict.WRONG, failure.message)

    @property
    def _speed_up(self) -> SpeedUp:
        return speed_up_now(self._log_ratios, self.promise.than, is_noisy=self.device.clock.is_noisy)

    @property
    def _its_name(self) -> str:
        """What messages call the other."""
        return words_for(self.promise.than)

    def _slower(self) -> str:
        return f"It is {self._speed_up.text}; the header says {self.promise.speed_up:.3f}."

    def _undecided(self) -> str:
        if self.promise.speed_up is None:
            says = f"the header says no speed-up over {self._its_name}"
            return f"Undecided: {says}, and times of another day do not compare."
        if self.other in self.unbuilt:
            return f"Undecided: {self._its_name} cannot be built: {self.unbuilt[self.other]}"
        if not self._log_ratios:
            return "Undecided: there was no time left for a turn."
        promised = f"whether that is the {self.promise.speed_up:.3f} of the header"
        return f"Undecided: {len(self._log_ratios)} turns do not show {promised}; it is {self._speed_up.text}."

    def _ended(self, verdict: GateVerdict, message: str = "") -> CheckedSchedule:
        return replace(
            self.checked,
            verdict=verdict,
            message=message,
            device=self.device.name,
            speed_up=self._speed_up if self._log_ratios else None,
            now_ms=statistics.median(self._times_s) * 1e3 if self._times_s else None,
            clock=self.device.clock.value if self._times_s else "",
        )
