"""Whether a device still computes as fast as it did when it was opened."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

# A board that is throttled by heat, or shared after all, is off by more than this.
LARGEST_DRIFT = 0.10


class CanaryWatch:
    """Compares times of a fixed piece of work, the canary, with their baseline.

    Args:
        baseline_s: canary times of the device at rest, at least one.
    """

    def __init__(self, baseline_s: Sequence[float]) -> None:
        self.baseline_s = statistics.median(baseline_s)

    def drift(self, canary_s: Sequence[float]) -> float:
        """The largest deviation from the baseline as a share of it, with its sign; 0 when there is no canary."""
        deviations = [time_s / self.baseline_s - 1 for time_s in canary_s]
        return max(deviations, key=abs, default=0.0)

    def is_steady(self, canary_s: Sequence[float]) -> bool:
        """Whether every canary is within the largest drift of the baseline."""
        return abs(self.drift(canary_s)) <= LARGEST_DRIFT
