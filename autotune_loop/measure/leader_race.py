"""The race of a batch's leaders: those that may be the best are timed again, each time in a process of its own.

One timing is right to a few per cent: what memory a process gets and what else runs meanwhile differ. The fastest of
many single timings is therefore above all a lucky one. Every schedule that cannot be told from the best is timed in
`TURNS` further processes, and its time is the mean of those alone: the luck by which it was chosen has no part in it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from autotune_loop.candidate import mean_ms
from autotune_loop.run_scale import process_error

TURNS = 3
MOST_LEADERS = 8
# Two schedules are told apart when their times differ by so many standard errors.
DEVIATIONS = 2.0
_SETTLED_ERROR = process_error(TURNS)


@dataclass
class Leader:
    """A schedule that may be the best.

    Attributes:
        first_ms: its time when it was first timed.
        times_ms: of the race, one for each process.
    """

    symbol: str
    first_ms: float
    times_ms: list[float] = field(default_factory=list)
    failed: bool = False

    @property
    def log_ms(self) -> float:
        """The estimate of the logarithm of its time."""
        return math.log(mean_ms(self.times_ms or [self.first_ms]))

    @property
    def log_error(self) -> float:
        """Standard error of that."""
        return process_error(max(1, len(self.times_ms)))


class LeaderRace:
    """Decides who is timed next, and what each one's time is.

    Args:
        first_ms: schedule → its time when it was first timed.
        best_ms: the best time known before; infinite if there is none.
    """

    def __init__(self, first_ms: Mapping[str, float], best_ms: float, seed: int) -> None:
        self._leaders = {symbol: Leader(symbol, time_ms) for symbol, time_ms in first_ms.items()}
        self._best_log_ms = math.log(best_ms)
        self._chance = random.Random(seed)

    def next_turn(self) -> list[str]:
        """The schedules to time next, in random order; empty once the leaders are settled."""
        ranked = sorted((one for one in self._leaders.values() if not one.failed), key=lambda one: one.log_ms)
        if not ranked:
            return []
        best = min([(self._best_log_ms, _SETTLED_ERROR), (ranked[0].log_ms, ranked[0].log_error)])
        unsettled = [
            one.symbol
            for one in ranked[:MOST_LEADERS]
            if len(one.times_ms) < TURNS and one.log_ms - best[0] <= DEVIATIONS * math.hypot(one.log_error, best[1])
        ]
        self._chance.shuffle(unsettled)
        return unsettled

    def add(self, symbol: str, time_ms: float | None) -> None:
        """A schedule was timed again; None if that failed."""
        if time_ms is None:
            self._leaders[symbol].failed = True
        else:
            self._leaders[symbol].times_ms.append(time_ms)

    def settled(self) -> dict[str, tuple[float, int]]:
        """Schedule → its time in milliseconds and the processes that it comes from, of those that were timed again."""
        return {one.symbol: (math.exp(one.log_ms), len(one.times_ms)) for one in self._leaders.values() if one.times_ms}
