"""The result of timing one schedule."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from enum import Enum

from devices.device import Clock
from devices.device_trouble import TroubleKind


class MeasureFailureReason(Enum):
    """Why a schedule has no time."""

    WRONG_OUTPUT = "wrong output"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    HALIDE_ERROR = "Halide error"
    OUT_OF_MEMORY = "out of memory"
    BAD_REPORT = "unreadable report"
    WRONG_ARGUMENTS = "wrong arguments"
    DEVICE = "device trouble"
    KILLS_DEVICE = "kills devices"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Measurement:
    """The time of one schedule on one device.

    Attributes:
        kernel: its symbol.
        device: the device's name.
        clock: what it was timed with.
        repetitions_s: seconds of one call, for every repetition.
        stopped_by: why repeating ended: 'precision', 'time', 'repetitions' or 'gave_up'.
        output_checked: the output was compared with the reference's.
        canary_s: the canary's times right before and after; empty where the device has none.
        factor: multiplied with it, its times compare with those of the run's first device.
    """

    kernel: str
    device: str
    clock: Clock
    repetitions_s: tuple[float, ...]
    stopped_by: str
    output_checked: bool
    canary_s: tuple[float, ...] = ()
    factor: float = 1.0

    @property
    def median_s(self) -> float:
        """Median of the repetitions."""
        return statistics.median(self.repetitions_s)

    @property
    def comparable_median_s(self) -> float:
        """The median on the scale of the run's first device."""
        return self.median_s * self.factor

    @property
    def minimum_s(self) -> float:
        """The fastest repetition."""
        return min(self.repetitions_s)

    @property
    def spread_s(self) -> float:
        """The median distance from the median, scaled to a standard deviation of normal noise."""
        middle = self.median_s
        return 1.4826 * statistics.median(abs(t - middle) for t in self.repetitions_s)


@dataclass(frozen=True)
class MeasureFailure:
    """A schedule without a time.

    Attributes:
        message: what happened, for the user.
        log: the end of the runner's output.
        trouble: what is wrong with the device, where the reason is DEVICE.
        under_way: the device went away while the schedule was running on it.
    """

    kernel: str
    device: str
    reason: MeasureFailureReason
    message: str
    log: str
    trouble: TroubleKind | None = None
    under_way: bool = False
