"""Many cheap searches for one batch: distinct schedules that the run has not seen yet."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.autotune_loop.candidate import SearchedSchedule, SearchFailure, SearchPoint
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.events import Listener, SearchProgress
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Search
from halide_autotune.autotune_loop.search.plan import random_points
from halide_autotune.autotune_loop.search.waiting import result_unless
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.failure_log import FailureLog
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailureReason
from halide_autotune.targets.process.stop_signal import StopSignal

# Small pipelines have few schedules: a batch gives up after this many searches per wanted schedule.
_MAX_SEARCHES_PER_WANTED = 6


class AllSearchesFailed(GeneratorError):
    """No search for a pool gave a schedule; others may."""


@dataclass
class BatchInProgress:
    """The state of a batch under construction; used by the thread that builds it.

    Attributes:
        values: of the tuned parameters that its searches are made with; empty where none are tuned.
        edit: gives a sample of Halide's search other vectors, None if it needs none; None where none is edited.
    """

    round_index: int
    task_index: int
    failed: int = 0
    values: Mapping[str, str] = field(default_factory=dict)
    edit: Callable[[SearchedSchedule], Draft | None] | None = None
    stages_s: dict[str, float] = field(default_factory=dict)

    @property
    def place(self) -> tuple[int, int]:
        """The round and the task."""
        return self.round_index, self.task_index


@dataclass
class PoolSearch:
    """Samples the pool that a batch is chosen from."""

    executor: Executor
    context: RunContext
    failures: FailureLog
    listen: Listener
    stop: StopSignal

    def search(
        self, work: BatchInProgress, weights: Path, size: int, known: set[str], fewest: Callable[[], int]
    ) -> list[SearchedSchedule]:
        """Return up to `size` schedules in the order of their points, so that equal seeds give equal pools.

        Args:
            weights: the cost model that guides the searches.
            known: schedules that count as duplicates; new ones are added.
            fewest: how many schedules are enough now.

        Raises:
            AllSearchesFailed: none gave a schedule.
            GeneratorError: one failed with an error that concerns all.
        """
        pool: list[SearchedSchedule] = []
        duplicates = failed = 0
        message = ""
        seed = self.context.spec.options.search.seed
        points = (replace(point, values=work.values) for point in random_points(seed, *work.place, weights))

        def late() -> bool:
            return fewest() < size and len(pool) >= fewest()

        def enough() -> bool:
            return len(pool) >= size or late()

        for result in self._stream(work, points, size * _MAX_SEARCHES_PER_WANTED, enough, late):
            if isinstance(result, SearchFailure):
                failed += self._failed(work, result)
                message = message or result.failure.message
            elif result.schedule_sha256 in known or len(pool) >= size:
                duplicates += int(result.schedule_sha256 in known)
                shutil.rmtree(result.folder, ignore_errors=True)
            else:
                known.add(result.schedule_sha256)
                pool.append(result)
            self.listen(SearchProgress(*work.place, len(pool), size, duplicates, failed))
        if not (pool or duplicates or late() or self.stop.is_set()) and failed:
            raise AllSearchesFailed(f"All {failed} searches failed. The first failure: {message}")
        return pool

    def _stream(
        self,
        work: BatchInProgress,
        points: Iterator[SearchPoint],
        at_most: int,
        enough: Callable[[], bool],
        late: Callable[[], bool],
    ) -> Iterator[SearchedSchedule | SearchFailure]:
        """Results in the order of the points, a window of searches under way at any time.

        No search begins once it is enough; once it is late, those under way are left.
        """
        under_way: deque[Future[SearchedSchedule | SearchFailure]] = deque()
        submitted = 0
        while True:
            while (
                len(under_way) < 2 * self.executor.build_slots
                and submitted < at_most
                and not (enough() or self.stop.is_set())
            ):
                label = f"{work.round_index}_{work.task_index}_{submitted}"
                folder = self.context.workspace.work_folder / "search" / label
                search = Search(folder, work.task_index, next(points), tells_schedule=work.edit is not None)
                under_way.append(self.executor.submit(search))
                submitted += 1
            found = result_unless(under_way[0], late) if under_way else None
            if found is None:
                for future in under_way:
                    future.cancel()
                return
            under_way.popleft()
            yield found

    def _failed(self, work: BatchInProgress, result: SearchFailure) -> int:
        """Record a failure; return how many to count: none for a search that was stopped."""
        if result.failure.reason is GeneratorFailureReason.STOPPED:
            return 0
        if result.failure.reason.concerns_every_candidate:
            raise GeneratorError(result.failure.message)
        self.failures.search_failed(*work.place, result)
        return 1
