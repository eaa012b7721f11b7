"""The canary, a fixed piece of work: its time tells whether a device computes as fast as it did."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from halide_autotune.devices.agent.protocol import core_list
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.targets.values.checks import number

# A board that is throttled by heat, or has other load, is off by more than this.
LARGEST_DRIFT = 0.10
# The ratio of two kernels hardly depends on the board's speed. But a board that is faster or slower by more than this
# factor is another one: its memory no longer keeps step with its cores as it did.
LARGEST_CHANGE = 1.5

# What a device may say that its canary took.
CANARY_S = number(1e-9, 1e6)


@dataclass(frozen=True)
class _Canary:
    time_s: Annotated[float, CANARY_S]


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
        """Whether every canary is within the largest drift of the baseline: what is timed alone counts."""
        return abs(self.drift(canary_s)) <= LARGEST_DRIFT

    def is_same_board(self, canary_s: Sequence[float]) -> bool:
        """Whether every canary is within the largest change: what is timed beside another kernel counts."""
        changes = (max(time_s / self.baseline_s, self.baseline_s / time_s) for time_s in canary_s)
        return all(change <= LARGEST_CHANGE for change in changes)

    def is_usual(self, canary_s: Sequence[float], *, is_paired: bool) -> bool:
        """Whether the device was near enough to its usual speed for what was timed alone, or beside another kernel."""
        return self.is_same_board(canary_s) if is_paired else self.is_steady(canary_s)
