"""The factor that brings a board's times to the run's scale, from reference schedules that both have timed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

# If a board's reference schedules are further from its factor than this (and the noise of the times), it is another
# kind of board: another cache, other cores, or throttling that the canary does not detect.
LARGEST_SCATTER = 0.25
# Differences within so many standard deviations count as noise.
_NOISE_DEVIATIONS = 3.0


@dataclass(frozen=True)
class ReferenceTime:
    """One reference schedule's time on a board.

    Attributes:
        time_ms: the fastest repetition, which other load disturbs least.
        spread_ms: the repetitions' standard deviation.
    """

    time_ms: float
    spread_ms: float

    @property
    def noise(self) -> float:
        """The spread as a share of the time."""
        return self.spread_ms / self.time_ms


@dataclass(frozen=True)
class BoardFactor:
    """How a board's times compare with the run's scale.

    Attributes:
        factor: brings the board's times to the scale: the median over the reference schedules.
        spread: how far the furthest schedule is from it, as a share: 0.04 for 4 %; 0 with one schedule.
        noise: the share that noise alone could explain.
        schedules: how many reference schedules it comes from.
        furthest: the schedule that is furthest from it; empty with one schedule.
    """

    factor: float
    spread: float
    noise: float
    schedules: int
    furthest: str = ""

    @property
    def fits(self) -> bool:
        """Whether one factor describes the board, so that its times are comparable."""
        return self.spread <= LARGEST_SCATTER + self.noise


def board_factor(scale: Mapping[str, ReferenceTime], times: Mapping[str, ReferenceTime]) -> BoardFactor:
    """The factor of a board, from the schedules that both have timed; 1 without any.

    Args:
        scale: schedule → its time on the run's scale.
        times: schedule → its time on the board.
    """
    ratios = {name: math.log(scale[name].time_ms / time.time_ms) for name, time in times.items() if name in scale}
    if not ratios:
        return BoardFactor(1.0, 0.0, 0.0, 0)
    middle = statistics.median(ratios.values())
    furthest = max(ratios, key=lambda name: abs(ratios[name] - middle))
    noise = math.hypot(scale[furthest].noise, times[furthest].noise)
    return BoardFactor(
        factor=math.exp(middle),
        spread=math.expm1(abs(ratios[furthest] - middle)),
        noise=_NOISE_DEVIATIONS * noise,
        schedules=len(ratios),
        furthest=furthest if len(ratios) > 1 else "",
    )
