"""The builders of a run's batches: of schedules that an autoscheduler finds, and of parameter sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from halide_autotune.autotune_loop.candidate import BuiltBatch, Candidate, Yardstick
from halide_autotune.autotune_loop.parameters.space import ParameterSet
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.search.batch_builder import BatchBuilder
from halide_autotune.autotune_loop.search.busy_funcs import BusyFuncs
from halide_autotune.autotune_loop.search.known.run_populations import TimedSchedule
from halide_autotune.autotune_loop.search.parameter_sets.parameter_batches import (
    ParameterBatches,
    failed_sets,
    timed_sets,
)
from halide_autotune.autotune_loop.search.parameter_sets.parameter_technique import TriedSet, sets_to_search


@dataclass(frozen=True)
class BatchRequest:
    """A batch to be built, with what is known when it is asked for, so that equal runs choose alike.

    Attributes:
        full_search: whether a full beam search is among its searches.
        waiting: number of tasks without a batch so far, which share the time left.
        tried: the parameter sets that were timed or failed with the generator's own schedule.
        timed: the schedules that were timed, which techniques start from.
        searched_with: the parameters with which schedules are searched: the first that give new ones; empty where
            none are tuned.
        device: one that can be asked where a schedule's time goes; None for none.
    """

    round_index: int
    full_search: bool
    waiting: int
    tried: Sequence[TriedSet] = ()
    timed: Sequence[TimedSchedule] = ()
    searched_with: Sequence[ParameterSet] = ()
    device: str | None = None


@dataclass(frozen=True)
class BatchBuilders:
    """Builds the batches of any task: called in one thread.

    Where schedules are searched and parameters tuned, rounds of the two take turns: both are compared with the same
    reference, so neither can starve the other. Schedules are searched with the fastest parameters so far, whichever
    schedule made them fast, because what suits the pipeline often suits both.
    """

    schedules: BatchBuilder
    parameter_sets: ParameterBatches
    busy_funcs: BusyFuncs

    def request(
        self, state: TaskState, round_index: int, waiting: int, *, full_search: bool, device: str | None
    ) -> BatchRequest:
        """What a batch is asked to be."""
        space, task_index = state.task.space, state.task_index
        if space is None:
            timed_now = tuple(TimedSchedule(one.symbol, one.sample, one.median_ms) for one in state.timed)
            return BatchRequest(round_index, full_search, waiting, timed=timed_now, device=device)
        database, sampling = self.schedules.store.database, self.schedules.context.spec.options.search
        tried = [*timed_sets(database, task_index, own_alone=True), *failed_sets(database, task_index)]
        timed = timed_sets(database, task_index, own_alone=False)
        values = sets_to_search(space, timed, sampling, (round_index, task_index))
        full = full_search or round_index == 1
        return BatchRequest(round_index, full, waiting, tried, searched_with=values)

    def build(
        self, state: TaskState, request: BatchRequest, weights: Path, yardstick_now: Callable[[], Yardstick | None]
    ) -> BuiltBatch:
        """Choose, build and link a batch.

        Args:
            weights: the cost model that guides searches.
            yardstick_now: gives what its candidates are to be timed beside, when they are linked.

        Raises:
            GeneratorError: no schedule of this generator can be built; the message shows the fix.
        """

        def sets() -> BuiltBatch:
            return self.parameter_sets.build(
                request.round_index, state.task_index, request.tried, yardstick_now, waiting=request.waiting
            )

        def schedules(values: ParameterSet | None = None) -> BuiltBatch:
            return self.schedules.build(
                request.round_index,
                state.task_index,
                weights,
                yardstick_now,
                full_search=request.full_search,
                waiting=request.waiting,
                values=values,
                tried=request.timed,
            )

        if state.task.space is None:
            with self.busy_funcs.looking(state.task_index, request.timed, request.device):
                return schedules()
        searches = [partial(schedules, values) for values in request.searched_with]
        if not state.task.searches:
            return sets()
        batch = sets() if request.round_index % 2 == 0 else searches.pop(0)()
        while batch.exhausted and searches:
            batch = searches.pop(0)()
        return sets() if batch.exhausted and request.round_index % 2 else batch

    def build_left_over(self, state: TaskState, candidates: Sequence[Candidate]) -> BuiltBatch:
        """Build what an earlier process has chosen and not timed: at least one."""
        return self.schedules.build_left_over(candidates, state.yardstick)

    def build_default(self, state: TaskState) -> BuiltBatch:
        """Build the default alone, where the first batch has left no time of it.

        Raises:
            GeneratorError: no schedule of this generator can be built; the message shows the fix.
        """
        builder = self.schedules if state.task.space is None else self.parameter_sets
        return builder.build_default(state.task_index, state.yardstick)
