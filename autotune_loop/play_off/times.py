"""Times of the contenders in a play-off: one per turn and device, each from its own process."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from devices.timing.measurement import Measurement

# The standard deviation of normal noise over its median absolute deviation.
_NORMAL_SCALE = 1.4826


@dataclass(frozen=True)
class ProcessTime:
    """The time of a call in one process.

    Attributes:
        median_s: of its calls; shown to users.
        quartile_s: a quarter of its calls were faster. Contenders are compared by it: other load only slows calls, so
            it is less disturbed than the median.
    """

    median_s: float
    quartile_s: float

    @classmethod
    def of(cls, measurement: Measurement) -> ProcessTime:
        """The time of a measurement."""
        calls_s = sorted(measurement.repetitions_s)
        return cls(measurement.median_s, calls_s[(len(calls_s) - 1) // 4])


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
    def compared_s(self) -> float:
        """The time that contenders are ranked by."""
        return statistics.median(process.quartile_s for process in self.processes)

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
    def range_ms(self) -> tuple[float, float]:
        """The fastest and the slowest process; expect later ones between them."""
        return min(self.turns_s) * 1e3, max(self.turns_s) * 1e3


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
