"""The canary, a fixed piece of work: its time tells whether a device computes as fast as it did."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from devices.agent.protocol import core_list
from devices.agent.session import AgentSession

# A board that is throttled by heat, or has other load, is off by more than this.
LARGEST_DRIFT = 0.10


@dataclass(frozen=True)
class _Canary:
    time_s: float


def time_canary(session: AgentSession, cores: Sequence[int]) -> float:
    """Return the canary's seconds on the first of `cores`, the best of several; takes no lease.

    Raises:
        DeviceTrouble: of any kind.
    """
    return session.ask_for(_Canary, "canary", [("cores", core_list(cores))]).time_s


class CanaryWatch:
    """Compares times of the canary with their baseline.

    Args:
        baseline_s: canary times of the device at rest, at least one.
    """

    def __init__(self, baseline_s: Sequence[float]) -> None:
        self.baseline_s = statistics.median(baseline_s)

    def drift(self, canary_s: Sequence[float]) -> float:
        """Return the largest deviation from the baseline as a signed share of it; 0 without a canary."""
        deviations = [time_s / self.baseline_s - 1 for time_s in canary_s]
        return max(deviations, key=abs, default=0.0)

    def is_steady(self, canary_s: Sequence[float]) -> bool:
        """Whether every canary is within the largest drift of the baseline."""
        return abs(self.drift(canary_s)) <= LARGEST_DRIFT
