"""Which of a run's tasks gets the next batch: the one with the largest expected gain per second.

Like the task scheduler of Ansor (Zheng et al. 2020, section 6) and MetaSchedule: the gain of a task's next batch is
estimated from how its best time has fallen of late, with a term of optimism for tasks that have had few batches, and a
floor so that none starves. All get a first batch before any gets a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

# How many of the last batches count.
_WINDOW = 3
# A batch's expected gain is at least this, divided by the number of batches that the task has had.
_OPTIMISM = 0.05
# Of all batches, the share that every task gets at least, divided by the number of tasks.
_FLOOR_SHARE = 0.25


@dataclass
class TaskHistory:
    """What one task's batches have brought.

    Attributes:
        best_ms: the best time after each batch whose result is known; infinite before the first time.
        batch_s: how long each of those batches took.
        started: batches that were begun, the ones under way included.
        is_exhausted: the search finds nothing new.
        full_search_s: how long the last full beam search took; None before the first.
        calls: how often whoever uses the tasks together calls this one; None where nobody says.
    """

    best_ms: list[float] = field(default_factory=list)
    batch_s: list[float] = field(default_factory=list)
    started: int = 0
    is_exhausted: bool = False
    full_search_s: float | None = None
    calls: float | None = None

    def add(self, best_ms: float, batch_s: float) -> None:
        """A batch has ended."""
        self.best_ms.append(min(best_ms, self.best_ms[-1]) if self.best_ms else best_ms)
        self.batch_s.append(batch_s)

    @property
    def gain_per_s(self) -> float:
        """How much the logarithm of the best time is expected to fall in the next batch, per second."""
        recent = [ms for ms in self.best_ms[-_WINDOW - 1 :] if math.isfinite(ms)]
        fall = math.log(recent[0] / recent[-1]) / (len(recent) - 1) if len(recent) > 1 else 0.0
        times_s = self.batch_s[-_WINDOW:]
        batch_s = sum(times_s) / len(times_s) if times_s else 1.0
        # A batch under way may gain as much as the last one, so the next one is expected to gain less.
        # Of a resumed run a round may have two batches: what was left over of it is one, too.
        waiting = max(0, self.started - len(self.best_ms))
        expected = fall / (1 + waiting) + _OPTIMISM / (1 + self.started)
        return expected / max(batch_s, 1e-3)


def next_task(histories: Sequence[TaskHistory], most_batches: int) -> int | None:
    """The task that gets the next batch; None when all are exhausted, or have had `most_batches` together."""
    open_tasks = [i for i, history in enumerate(histories) if not history.is_exhausted]
    begun = sum(history.started for history in histories)
    if not open_tasks or begun >= most_batches:
        return None
    fewest = min(open_tasks, key=lambda i: (histories[i].started, i))
    if histories[fewest].started == 0 or histories[fewest].started < _FLOOR_SHARE * begun / len(histories):
        return fewest
    worth = _worth(histories)
    return max(open_tasks, key=lambda i: (worth[i] * histories[i].gain_per_s, -histories[i].started, -i))


def _worth(histories: Sequence[TaskHistory]) -> list[float]:
    """What a relative gain of each task is worth: the time of all its calls, where it is said how many there are.

    So a network's time falls fastest (MetaSchedule's gradient). What has no time yet is worth as much as the most.
    """
    if any(history.calls is None for history in histories):
        return [1.0] * len(histories)
    times = [(history.calls or 0.0) * history.best_ms[-1] if history.best_ms else math.inf for history in histories]
    most = max(filter(math.isfinite, times), default=1.0)
    return [time if math.isfinite(time) else most for time in times]
