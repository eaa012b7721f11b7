"""What building and timing a schedule takes in a run, and what follows: how long one may take, how large a batch is.

Each of a run's pipelines has its own pace: what a small one takes says nothing of a large one.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.search.code_builds import SHARES_BEFORE_CHILDREN
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.run_store import RunStore

# Something that takes so many times as long to compile as others did is not worth waiting for: in runs of Halide's apps
# none of the five fastest took more than 1.8 times as long as is usual.
_PATIENCE = 2.5
_LEAST_LIMIT_S, _LEAST_FIRST_LIMIT_S = 5.0, 20.0
# So few builds, the reference's among them, do not say what others take.
_FEW_BUILDS = 3
_USUAL_BUILD_S, _USUAL_TIMING_S = 1.0, 0.3
# A run's budget has time for at least so many batches, unless they are as small as they may be.
_GENERATIONS = 20
_SMALL_BATCH, _SMALLEST_BATCH = 8, 4
# The first one's schedules are what all others come from.
_SMALL_FIRST_BATCH, _SMALLEST_FIRST_BATCH = 16, 6
# Where schedules take so long that a small batch would take more of the budget than this, it is smaller.
_LARGEST_SHARE, _LARGEST_FIRST_SHARE = 0.08, 0.2


@dataclass(frozen=True)
class RunPace:
    """By the schedules that a run has built and timed so far."""

    executor: Executor
    store: RunStore
    context: RunContext

    def trial_s(self, task_index: int) -> float:
        """What building and timing a schedule takes of the run's time; a guess before the first."""
        return self._build_s(task_index) + self.timing_s(task_index)

    def timing_s(self, task_index: int) -> float:
        """What timing a schedule takes of the run's time; a guess before the first."""
        timed_s = self.store.database.timing_times_s(task_index)
        timed_each_s = statistics.median(timed_s) if timed_s else _USUAL_TIMING_S
        return timed_each_s / max(1, sum(device.at_once for device in self.context.devices))

    def limit_s(self, task_index: int) -> float:
        """How long building one may take: a few times as long as others usually took; of the first, as a search."""
        built_s = sorted(self._built_s(task_index))
        if len(built_s) < _FEW_BUILDS:
            return max(_LEAST_FIRST_LIMIT_S, self.context.limits.search_s)
        return max(_LEAST_LIMIT_S, _PATIENCE * built_s[len(built_s) // 2])

    def batch_size(self, task_index: int, most: int, left_s: float | None) -> int:
        """How many schedules a batch has: few enough that there is time for many generations, each after the other.

        Args:
            left_s: the time left, of which building a batch may take a share; None for the first one.
        """
        budget_s = self.context.limits.budget_s
        is_known = self._built_s(task_index) or self.store.database.timing_times_s(task_index)
        if budget_s is None or not is_known:
            return most
        affordable = budget_s / len(self.context.tasks) / self.trial_s(task_index)
        small, smallest, share = _SMALL_BATCH, _SMALLEST_BATCH, _LARGEST_SHARE
        if left_s is None:
            small, smallest, share = _SMALL_FIRST_BATCH, _SMALLEST_FIRST_BATCH, _LARGEST_FIRST_SHARE
        least = max(smallest, min(small, int(share * affordable)))
        size = min(most, max(least, int(affordable / _GENERATIONS)))
        if left_s is None:
            return size
        # Others would only be built for the next batch, and chosen by less than is known then.
        return min(size, max(smallest, int(SHARES_BEFORE_CHILDREN[0] * left_s / self._build_s(task_index))))

    def _build_s(self, task_index: int) -> float:
        """What building a schedule takes of the run's time; a guess before the first."""
        built_s = self._built_s(task_index)
        return (statistics.median(built_s) if built_s else _USUAL_BUILD_S) / self.executor.build_slots

    def _built_s(self, task_index: int) -> list[float]:
        return [*self.store.database.build_times_s(task_index).values()]
