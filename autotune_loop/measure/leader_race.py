"""The race of a batch's leaders: those that may be the best are timed again, each time in a process of its own.

One timing is right to a few per cent: what memory a process gets and what else runs meanwhile differ. The fastest of
many single timings is therefore above all a lucky one. Every schedule that is near the best is timed in `TURNS` further
processes, and its time is the mean of those alone: the luck by which it was chosen has no part in it.
Timings that other load disturbed do not count; they are repeated, since load comes and goes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.candidate import Measured, mean_ms
from halide_autotune.autotune_loop.run_scale import DEVIATIONS, process_error

TURNS = 3
# Of one schedule, disturbed ones included.
_MOST_TIMINGS = 3 * TURNS
MOST_LEADERS = 8
# Near the best is what is slower by at most so many standard errors. Of what is further off so few are faster that to
# time it, too, finds no better winner, and takes almost three times the timings (`benchmarks.leader_races`).
NEAR = 0.5
_SETTLED_ERROR = process_error(TURNS)


@dataclass
class Leader:
    """A schedule that may be the best.

    Attributes:
        first: its first timing.
        times_ms: of the race, one for each process that was not disturbed.
        timings: how often it was timed in the race.
    """

    first: Measured
    times_ms: list[float] = field(default_factory=list)
    timings: int = 0
    failed: bool = False

    @property
    def symbol(self) -> str:
        """Of its kernel."""
        return self.first.candidate.symbol

    @property
    def is_settled(self) -> bool:
        """Whether it is not timed again."""
        return self.failed or len(self.times_ms) >= TURNS or self.timings >= _MOST_TIMINGS

    @property
    def log_ms(self) -> float:
        """The estimate of the logarithm of its time."""
        return math.log(mean_ms(self.times_ms or [self.first.median_ms]))

    @property
    def log_error(self) -> float:
        """Standard error of that."""
        return process_error(len(self.times_ms)) if self.times_ms else self.first.log_error

    @property
    def is_sound(self) -> bool:
        """Whether its time is of a process that other load did not disturb."""
        return bool(self.times_ms) or not self.first.is_disturbed


class LeaderRace:
    """Decides who is timed next, and what each one's time is.

    Args:
        first: the first timings of those that may be the best.
        best_ms: the best time known before; infinite if there is none.
        near: how many standard errors from the best are near it; where load disturbed a timing it is `DEVIATIONS`.
    """

    def __init__(self, first: Sequence[Measured], best_ms: float, seed: int, near: float = NEAR) -> None:
        self._leaders = {one.candidate.symbol: Leader(one) for one in first}
        self._best_log_ms = math.log(best_ms)
        self._chance = random.Random(seed)
        self._near = near

    def next_turn(self) -> list[str]:
        """The schedules to time next, in random order; empty once the leaders are settled."""
        ranked = sorted((one for one in self._leaders.values() if not one.failed), key=lambda one: one.log_ms)
        if not ranked:
            return []
        best = min([(self._best_log_ms, _SETTLED_ERROR), (ranked[0].log_ms, ranked[0].log_error)])
        unsettled = [one.symbol for one in ranked[:MOST_LEADERS] if not one.is_settled and self._is_near(one, *best)]
        self._chance.shuffle(unsettled)
        return unsettled

    def _is_near(self, one: Leader, best_log_ms: float, best_error: float) -> bool:
        near = self._near if one.is_sound else DEVIATIONS
        return one.log_ms - best_log_ms <= near * math.hypot(one.log_error, best_error)

    def add(self, symbol: str, timed: Measured | None) -> None:
        """A schedule was timed again; None if that failed."""
        leader = self._leaders[symbol]
        leader.timings += 1
        leader.failed = timed is None
        if timed is not None and not timed.is_disturbed:
            leader.times_ms.append(timed.median_ms)

    def settled(self) -> dict[str, tuple[float, int]]:
        """Schedule → its time in milliseconds and the processes that it comes from, of those that were timed again."""
        return {one.symbol: (math.exp(one.log_ms), len(one.times_ms)) for one in self._leaders.values() if one.times_ms}
