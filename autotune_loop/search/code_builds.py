"""Code for the candidates of a batch, whatever has chosen them, and the executable with all of it."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias

from halide_autotune.autotune_loop.candidate import Built, BuiltBatch, BuiltObject, Candidate, Yardstick, kernel_symbol
from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import BuildProgress, Listener
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Link
from halide_autotune.autotune_loop.search.lost_objects import submit_again
from halide_autotune.autotune_loop.search.pool import BatchInProgress
from halide_autotune.autotune_loop.search.waiting import first_done
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.failure_log import FailureLog
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import KernelLinkError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.process.stop_signal import StopSignal

Build: TypeAlias = "Future[BuiltObject | GeneratorFailure]"
# Shares of the time left after which building needs only a few candidates, and after which it needs only one.
BUILD_SHARES = (0.4, 0.7)
# The same where generations follow: what takes long to compile is to have children, too.
SHARES_BEFORE_CHILDREN = (0.15, 0.7)
_FEW = 4
# In its first round, a run times its default and one more, however long that takes.
LEAST = 2


@dataclass
class CodeBuilds:
    """Builds what was chosen for a batch."""

    executor: Executor
    store: RunStore
    context: RunContext
    deadline: Deadline
    listen: Listener
    stop: StopSignal

    def __post_init__(self) -> None:
        self._failures = FailureLog(self.store.database, self.listen)

    def symbol(self, work: BatchInProgress, sample_index: int) -> str:
        """The C symbol of a candidate's kernel."""
        return kernel_symbol(self.context.tasks[work.task_index].function_name, *work.place, sample_index)

    def failed(self, work: BatchInProgress, candidate: Candidate, failure: GeneratorFailure) -> None:
        """Record that a candidate could not be built."""
        work.failed += 1
        reason = failure.reason.value
        self._failures.candidate_failed(candidate, "build", reason, failure.message, failure.log)

    def fewest(
        self, all_of_them: int, shares: tuple[float, float], waiting: int, first: Future[Any] | None, least: int = 1
    ) -> Callable[[], int]:
        """How many are enough, as the time passes.

        Args:
            shares: of the time left, after which a few are enough, and after which the least number is.
            waiting: number of tasks without a batch so far, which share the time left.
            first: a search that gives one more.
            least: 0 where others give schedules as well.
        """
        few_after, one_after = (self.deadline.share(share / waiting) for share in shares)

        def fewest() -> int:
            if not few_after.within(0.0):
                return all_of_them
            if not one_after.within(0.0):
                return _FEW
            return 0 if self.deadline.within(0.0) and first is not None and first.done() else least

        return fewest

    def build_all(
        self,
        work: BatchInProgress,
        chosen: Sequence[Candidate],
        submit: Callable[[Candidate], Build],
        waiting: int,
        first: Future[Any] | None = None,
        shares: tuple[float, float] = BUILD_SHARES,
    ) -> tuple[list[Built], list[Candidate]]:
        """Build candidates until those that are enough are built; see `fewest`.

        One that takes long does not hold up the others.

        Returns:
            what is built, and the candidates whose builds have not ended, both in the order of the candidates.
        """
        built: dict[str, Built] = {}
        ended: set[str] = set()
        to_come = deque(chosen)
        under_way: dict[Build, Candidate] = {}
        fewest = self.fewest(len(chosen), shares, waiting, first)

        def late() -> bool:
            return fewest() < len(chosen) and len(built) >= fewest()

        while True:
            enough = self.stop.is_set() or late()
            while to_come and len(under_way) < 2 * self.executor.build_slots and not enough:
                candidate = to_come.popleft()
                under_way[submit(candidate)] = candidate
            done = first_done([*under_way], late)
            if done is None:
                for future in under_way:
                    future.cancel()
                left = [one for one in chosen if one.symbol not in ended]
                return [built[one.symbol] for one in chosen if one.symbol in built], left
            candidate, result = under_way.pop(done), done.result()
            ended.add(candidate.symbol)
            if isinstance(result, GeneratorFailure):
                self.failed(work, candidate, result)
            else:
                built[candidate.symbol] = self.store.keep_build(candidate, result)
            self.listen(BuildProgress(*work.place, len(built), work.failed, len(chosen)))

    def _link(
        self, work: BatchInProgress, built: Sequence[Built], yardstick: Yardstick | None
    ) -> tuple[tuple[Candidate, ...], Executable | None]:
        """Link what is built with what it is timed beside.

        A kernel that cannot be linked has failed, and the others are linked without it.

        Returns:
            what is in the executable, in its order; none, and no executable, if there is nothing.

        Raises:
            ToolchainError: it is no kernel's fault, or it is the yardstick's.
        """
        name = f"batch_{work.round_index}_{work.task_index}"
        folder = self.context.workspace.work_folder / "executables"
        beside = () if yardstick is None else (yardstick.kernel,)
        left = list(built)
        while left and not self.stop.is_set():
            try:
                link = Link(folder, name, (*(one.kernel for one in left), *beside))
                executable = self.executor.submit(link).result()
            except KernelLinkError as error:
                refused = [one for one in left if one.kernel.name in error.kernels]
                if not refused:
                    raise
                for one in refused:
                    work.failed += 1
                    message, _, log = error.message.partition("\n")
                    reason = GeneratorFailureReason.FAILED.value
                    self._failures.candidate_failed(one.candidate, "link", reason, message, log)
                left = [one for one in left if one not in refused]
            else:
                return tuple(one.candidate for one in left), executable
        return (), None

    def build_left_over(
        self, candidates: Sequence[Candidate], yardstick: Yardstick | None
    ) -> tuple[BuiltBatch, list[Candidate], dict[str, Build]]:
        """Build what an earlier process has chosen and not timed: at least one, all of one argument set.

        Returns:
            the batch; the candidates whose builds have not ended; and builds by symbol, of these and others.
        """
        newest = candidates[-1]
        work = BatchInProgress(newest.round_index, newest.task_index)
        whole = self.store.database.build_times_s()
        with timed(work, "generate code"):
            kernels = self.store.kernels(one.symbol for one in candidates if one.symbol in whole)
            there = {kernel.name: kernel for kernel in kernels}
            built = [Built(one, there[one.symbol]) for one in candidates if one.symbol in there]
            lost = [one for one in candidates if one.symbol not in there]
            submitted: dict[str, Build] = {}

            def submit(candidate: Candidate) -> Build:
                limit_s = self.context.limits.search_s
                submitted[candidate.symbol] = submit_again(self.executor, self.store, candidate, limit_s)
                return submitted[candidate.symbol]

            more, left = self.build_all(work, lost, submit, waiting=1)
        with timed(work, "link"):
            return self.batch_of(work, [*built, *more], yardstick), left, submitted

    def batch_of(
        self,
        work: BatchInProgress,
        built: Sequence[Built],
        yardstick: Yardstick | None,
        *,
        exhausted: bool = False,
        full_search_s: float | None = None,
    ) -> BuiltBatch:
        """Link what is built with what it is timed beside, as a batch.

        Raises:
            ToolchainError: it cannot be linked, and it is no candidate's fault.
        """
        candidates, executable = self._link(work, built, yardstick)
        return BuiltBatch(
            round_index=work.round_index,
            task_index=work.task_index,
            candidates=candidates,
            executable=executable,
            exhausted=exhausted,
            failed=work.failed,
            full_search_s=full_search_s,
            stages_s=work.stages_s,
            yardstick=yardstick,
        )


@contextlib.contextmanager
def timed(work: BatchInProgress, stage: str) -> Iterator[None]:
    """Add the seconds of a stage."""
    started = time.monotonic()
    try:
        yield
    finally:
        work.stages_s[stage] = work.stages_s.get(stage, 0.0) + time.monotonic() - started
