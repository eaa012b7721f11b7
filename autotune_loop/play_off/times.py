"""Times of the contenders in a play-off: one per turn and device, each from its own process."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from halide_autotune.autotune_loop.store.published import ScheduleTime
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.devices.timing.measurement_at_sizes import by_size, medians_by_size_s

# The standard deviation of normal noise over its median absolute deviation.
_NORMAL_SCALE = 1.4826
# The largest ratio that the runner takes.
_NEVER_LOST = 1e6


@dataclass(frozen=True)
class ProcessTime:
    """The time of a call in one process.

    Attributes:
        median_s: of its calls; shown to users.
        compared: what contenders are compared by: the time as a multiple of the yardstick's in the same turn, and 1
            for the yardstick itself. Without a yardstick, or noise, the seconds that a quarter of the calls were below:
            other load only slows calls, so they are less disturbed than the median.
        by_size_s: size → the median there; empty if there is one size.
    """

    median_s: float
    compared: float
    by_size_s: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, measurement: Measurement, yardstick: str | None, size: str = "") -> ProcessTime:
        """The time of a measurement, made with the settings of `turn_settings`.

        Args:
            size: the one that counts; empty for all that it was made at.
        """
        measurement = by_size(measurement)[size] if size else measurement
        compared = measurement.ratio
        if compared is None:
            is_yardstick = measurement.kernel == yardstick and measurement.clock.is_noisy
            compared = 1.0 if is_yardstick else measurement.quarter_s
        return cls(measurement.median_s, compared, medians_by_size_s(measurement))


@dataclass(frozen=True)
class DeviceTimes:
    """One contender on one device.

    Attributes:
        processes: one for each turn.
    """

    processes: tuple[ProcessTime, ...]

    @property
    def turns_s(self) -> tuple[float, ...]:
        """The median of each turn's process."""
        return tuple(process.median_s for process in self.processes)

    @property
    def compared(self) -> float:
        """What contenders are ranked by: Hodges' and Lehmann's estimate, which one disturbed turn does not move far."""
        return math.exp(statistics.median(means_of_pairs([math.log(process.compared) for process in self.processes])))

    @property
    def median_ms(self) -> float:
        """Median over the turns."""
        return statistics.median(self.turns_s) * 1e3

    @property
    def spread_ms(self) -> float:
        """Robust standard deviation between processes, which is larger than within one."""
        middle_s = statistics.median(self.turns_s)
        return _NORMAL_SCALE * statistics.median(abs(turn_s - middle_s) for turn_s in self.turns_s) * 1e3

    @property
    def schedule_time(self) -> ScheduleTime:
        """As a run tells it."""
        return ScheduleTime(
            self.median_ms, self.spread_ms, self.range_ms, len(self.processes), by_size_ms=self.by_size_ms
        )

    @property
    def by_size_ms(self) -> dict[str, float]:
        """Size → the median over the turns there; empty if there is one size."""
        sizes = self.processes[0].by_size_s
        return {size: statistics.median(one.by_size_s[size] for one in self.processes) * 1e3 for size in sizes}

    @property
    def range_ms(self) -> tuple[float, float]:
        """The fastest and the slowest process; expect later ones between them."""
        return min(self.turns_s) * 1e3, max(self.turns_s) * 1e3


def turn_settings(settings: MeasureSettings, kernel: str, yardstick: str | None) -> MeasureSettings:
    """How a contender is timed: beside the yardstick, and to the end even if it is slower."""
    if yardstick is None or kernel == yardstick:
        return settings
    return replace(settings, beside=yardstick, lost_over=_NEVER_LOST)


def means_of_pairs(values: Sequence[float]) -> list[float]:
    """The means of all pairs, each value with itself included (Walsh's averages), in order."""
    return sorted((a + b) / 2 for place, a in enumerate(values) for b in values[place:])


# For each turn, device → contender → its time, without failures.
Turns = list[Mapping[str, Mapping[str, ProcessTime]]]


def devices_with(turns: Turns, names: Sequence[str]) -> list[str]:
    """The devices that timed all of these contenders in every turn."""
    if not turns:
        return []
    return [device for device in turns[0] if all(turn.get(device, {}).keys() >= set(names) for turn in turns)]


def times_of(turns: Turns, name: str, devices: Sequence[str]) -> dict[str, DeviceTimes]:
    """A contender's times on these devices, which must all have timed it in every turn."""
    return {device: DeviceTimes(tuple(turn[device][name] for turn in turns)) for device in devices}
