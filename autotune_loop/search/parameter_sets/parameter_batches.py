"""From a round's number to an executable with a batch of new parameter sets, in the generator's own schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halide_autotune.autotune_loop.candidate import (
    Built,
    BuiltBatch,
    Candidate,
    Origin,
    ParameterPoint,
    Yardstick,
)
from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Listener
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.own_schedule import BuildOwn
from halide_autotune.autotune_loop.parameters.space import ParameterSpace, set_sha256
from halide_autotune.autotune_loop.search.code_builds import LEAST, Build, CodeBuilds, timed
from halide_autotune.autotune_loop.search.lost_objects import rebuild
from halide_autotune.autotune_loop.search.parameter_sets.parameter_technique import ProposedSet, TriedSet, propose_sets
from halide_autotune.autotune_loop.search.pool import BatchInProgress
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.process.stop_signal import StopSignal


@dataclass
class ParameterBatches:
    """Builds one batch at a time: called in one thread, it submits the work to the executor.

    Attributes:
        affordable: how many sets can still be timed.
    """

    executor: Executor
    store: RunStore
    context: RunContext
    deadline: Deadline
    affordable: Callable[[], int]
    listen: Listener
    stop: StopSignal

    def __post_init__(self) -> None:
        self._builds = CodeBuilds(self.executor, self.store, self.context, self.deadline, self.listen, self.stop)

    def build(
        self,
        round_index: int,
        task_index: int,
        tried: Sequence[TriedSet],
        yardstick_now: Callable[[], Yardstick | None],
        *,
        waiting: int = 1,
    ) -> BuiltBatch:
        """Choose, build and link one batch; the first begins with the default parameters.

        Args:
            tried: what was timed or failed so far.
            yardstick_now: gives what its candidates are to be timed beside, when they are linked.
            waiting: number of tasks without a batch so far, which share the time left; at least 1.

        Raises:
            GeneratorError: the generator refuses a value.
        """
        work = BatchInProgress(round_index, task_index)
        space, sampling = self._space(work), self.context.spec.options.search
        with timed(work, "choose"):
            known = self.store.database.known_schedules(task_index)
            sets = []
            if round_index == 0:
                sets.append(ProposedSet(space.defaults))
                known.add(set_sha256(space.defaults))
            count = max(LEAST, min(sampling.batch_size, self.affordable())) - len(sets)
            sets += propose_sets(space, tried, known, count, sampling, work.place)
            chosen = [] if self.stop.is_set() else [self._keep(work, place, one) for place, one in enumerate(sets)]
        with timed(work, "generate code"):
            built, _ = self._builds.build_all(work, chosen, self._submit, waiting)
        with timed(work, "link"):
            exhausted = not sets and not self.stop.is_set()
            return self._builds.batch_of(work, built, yardstick_now(), exhausted=exhausted)

    def build_default(self, task_index: int, yardstick: Yardstick | None) -> BuiltBatch:
        """Build the default alone, where the first batch has left no time of it."""
        work = BatchInProgress(0, task_index)
        candidate = self.store.database.candidate(self._builds.symbol(work, 0))
        if candidate is None:
            candidate = self._keep(work, 0, ProposedSet(self._space(work).defaults))
        result = rebuild(self.executor, self.store, candidate)
        built: list[Built] = []
        if isinstance(result, GeneratorFailure):
            self._builds.failed(work, candidate, result)
        else:
            built.append(result)
        return self._builds.batch_of(work, built, yardstick)

    def _space(self, work: BatchInProgress) -> ParameterSpace:
        space = self.context.tasks[work.task_index].space
        assert space is not None, "only tasks with tuned parameters come here"
        return space

    def _keep(self, work: BatchInProgress, sample_index: int, proposed: ProposedSet) -> Candidate:
        is_default = work.round_index == 0 and sample_index == 0
        origin = Origin.DEFAULT_PARAMETERS if is_default else Origin.PARAMETERS
        candidate = Candidate(
            round_index=work.round_index,
            task_index=work.task_index,
            sample_index=sample_index,
            symbol=self._builds.symbol(work, sample_index),
            point=ParameterPoint(origin, proposed.values),
            schedule_sha256=set_sha256(proposed.values),
            search_s=0.0,
            predicted_ms=proposed.predicted_ms,
        )
        self.store.database.add_candidate(candidate)
        return candidate

    def _submit(self, candidate: Candidate) -> Build:
        folder = self.store.objects / candidate.symbol
        return self.executor.submit(BuildOwn(folder, candidate.task_index, candidate.symbol, candidate.parameters))


def timed_sets(database: RunDatabase, task_index: int, *, own_alone: bool) -> list[TriedSet]:
    """The parameter sets that a run has timed so far, in the order of timing.

    Args:
        own_alone: with the generator's own schedule, not with schedules that were searched.
    """
    return [
        TriedSet(one.candidate.parameters, one.median_ms)
        for one in database.measured()
        if one.candidate.task_index == task_index and (one.candidate.is_parameter_set or not own_alone)
    ]


def failed_sets(database: RunDatabase, task_index: int) -> list[TriedSet]:
    """The parameter sets with which the generator's own schedule fails."""
    failed = [database.candidate(symbol) for symbol in database.failure_reasons(task_index)]
    return [TriedSet(one.parameters, None) for one in failed if one is not None and one.is_parameter_set]
