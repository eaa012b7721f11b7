"""The builders of a run's batches: of schedules that an autoscheduler finds, and of parameter sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.candidate import BuiltBatch, Yardstick
from autotune_loop.run.task_state import TaskState
from autotune_loop.search.batch_builder import BatchBuilder
from autotune_loop.search.parameter_batches import ParameterBatches, tried_sets
from autotune_loop.search.parameter_technique import TriedSet


@dataclass(frozen=True)
class BatchRequest:
    """A batch to be built.

    Attributes:
        full_search: whether its first sample is a full beam search.
        waiting: number of tasks without a batch so far, which share the time left.
        tried: the parameter sets that were timed or failed when the batch was asked for; equal runs choose alike.
    """

    round_index: int
    full_search: bool
    waiting: int
    tried: Sequence[TriedSet]


@dataclass(frozen=True)
class BatchBuilders:
    """Builds the batches of any task: called in one thread."""

    schedules: BatchBuilder
    parameter_sets: ParameterBatches

    def request(self, state: TaskState, round_index: int, waiting: int, *, full_search: bool) -> BatchRequest:
        """What a batch is asked to be, with what is known now."""
        tried = [] if state.task.space is None else tried_sets(self.schedules.store.database, state.task_index)
        return BatchRequest(round_index, full_search, waiting, tried)

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
        if state.task.space is not None:
            return self.parameter_sets.build(
                request.round_index, state.task_index, request.tried, yardstick_now, waiting=request.waiting
            )
        return self.schedules.build(
            request.round_index,
            state.task_index,
            weights,
            yardstick_now,
            full_search=request.full_search,
            waiting=request.waiting,
        )

    def build_default(self, state: TaskState) -> BuiltBatch:
        """Build the default alone, where the first batch has left no time of it.

        Raises:
            GeneratorError: no schedule of this generator can be built; the message shows the fix.
        """
        builder = self.schedules if state.task.space is None else self.parameter_sets
        return builder.build_default(state.task_index, state.yardstick)
