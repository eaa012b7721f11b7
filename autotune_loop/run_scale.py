"""A run's scale: all its times are multiples of what the reference takes, whatever the machine did at each moment."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

# Standard deviation of the logarithm of a schedule's ratio to the yardstick from one process to the next. Measured on a
# shared two-core machine: 0.01 to 0.02 where nothing else ran, 0.06 where tests did.
PROCESS_NOISE = 0.04
# The same for a timing in which other processes took cores away most of the time.
DISTURBED_NOISE = 0.3
# The yardstick then takes this much longer than usual.
_SLOWED_DOWN = 1.25
# How far one timing of the reference is from its usual time, until the run knows better: a standard deviation of
# logarithms as on a shared machine. It counts as this many timings.
_USUAL_NOISE, _USUAL_COUNT = 0.15, 2
# Two schedules are told apart when their times differ by so many standard errors.
DEVIATIONS = 2.0
# Standard deviations to either side in which 95 % and 90 % of normal errors are.
_DEVIATIONS_95 = 1.96
_DEVIATIONS_90 = 1.645


def process_error(processes: int) -> float:
    """Standard error of the logarithm of a ratio to the yardstick that is the mean of so many processes."""
    return PROCESS_NOISE / math.sqrt(processes)


class RunScale:
    """What the reference of an argument set takes on the first device, which every timing beside a yardstick tells.

    Attributes:
        device: whose times these are.
        anchor_ms: what was known when this process began, in which it computes: a constant, so that times compare.

    Args:
        times_ms: what the timings so far say that the reference takes; at least one.
    """

    def __init__(self, device: str, times_ms: Sequence[float]) -> None:
        self.device = device
        self._times_ms = list(times_ms)
        self.anchor_ms = self.settled_ms

    def add(self, device: str, reference_ms: float) -> None:
        """A timing on a device says that the reference takes so long; other devices than the first do not count."""
        if device == self.device:
            self._times_ms.append(reference_ms)

    @property
    def settled_ms(self) -> float:
        """What the reference takes: the median of all that is known."""
        return statistics.median(self._times_ms)

    def slow_down(self, reference_ms: float) -> float:
        """How many times as long as usual everything takes when the reference takes so long; 1 for small changes."""
        factor = reference_ms / self.settled_ms
        return factor if factor > _SLOWED_DOWN else 1.0

    def time_ms(self, relative: float) -> float:
        """A multiple of the reference's time on the run's scale."""
        return relative * self.anchor_ms

    @property
    def correction(self) -> float:
        """What is known now over what was known when this process began: a factor for times that users see."""
        return self.settled_ms / self.anchor_ms

    def range_ms(self, time_ms: float, log_error: float) -> tuple[float, float]:
        """Between which times a schedule will be found at another moment, with about 95 % confidence.

        Either side is as far away as the times of the reference went to that side, since a machine with two speeds
        has no middle.

        Args:
            time_ms: the settled time.
            log_error: standard error of the logarithm of its ratio to the reference.
        """
        logs = [math.log(reference_ms) for reference_ms in self._times_ms]
        middle, count = statistics.median(logs), len(logs)
        tails = statistics.quantiles(logs * 2, n=20, method="inclusive")  # twice, because one is enough
        factors = []
        for tail in (tails[0], tails[-1]):
            found = (tail - middle) / _DEVIATIONS_90
            variance = (count * found**2 + _USUAL_COUNT * _USUAL_NOISE**2) / (count + _USUAL_COUNT)
            # A median of so many is that much off itself.
            variance *= 1 + math.pi / 2 / count
            factors.append(math.exp(_DEVIATIONS_95 * math.sqrt(variance + log_error**2)))
        return time_ms / factors[0], time_ms * factors[1]
