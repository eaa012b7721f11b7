"""The default: what a run's gain is measured by. It has a time, or a reason for none, before anything is published."""

from __future__ import annotations

from collections.abc import Sequence

from halide_autotune.autotune_loop.candidate import kernel_symbol
from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.run.timed import Timed
from halide_autotune.autotune_loop.search.lost_objects import rebuild
from halide_autotune.autotune_loop.store.kernel_failure import KernelFailure
from halide_autotune.autotune_loop.store.run_database import NOT_DONE
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.generator.run import GeneratorFailure


def default_failure(store: RunStore, state: TaskState) -> KernelFailure | None:
    """The newest failure of the default: the first sample of the first round."""
    return store.database.failure_of(kernel_symbol(state.task.function_name, 0, state.task_index, 0))


def is_left_over(store: RunStore, state: TaskState) -> bool:
    """Whether an earlier process has left the default without a time that it may get now."""
    if state.has_baseline or state.history.started == 0:
        return False
    failure = default_failure(store, state)
    return failure is None or not failure.is_its_own


def failed_on_a_device(store: RunStore, state: TaskState) -> bool:
    """Whether it was a device that kept the default from being timed."""
    failure = default_failure(store, state)
    return not state.has_baseline and failure is not None and failure.may_pass


def keep_failure(store: RunStore, state: TaskState, *, tried_again: bool = False) -> None:
    """Keep why the default has no time, once this run will not try again."""
    failure = default_failure(store, state)
    if state.has_baseline or failure is None or failure.reason == NOT_DONE:
        return
    if tried_again or not failure.may_pass:
        state.no_default = failure.of_default


def restore_objects(executor: Executor, store: RunStore, needed: Sequence[Timed], listen: Listener) -> None:
    """Build again what a play-off needs and a kill has taken: the code of these schedules."""
    for timed in needed:
        candidate, failure = store.database.candidate(timed.symbol), store.database.failure_of(timed.symbol)
        is_there = store.has_object(timed.symbol)
        if candidate is None or is_there or (failure is not None and failure.is_its_own):
            continue
        built = rebuild(executor, store, candidate)
        if isinstance(built, GeneratorFailure):
            who = "the default" if timed.is_default else timed.sample
            text = f"The play-off is held without {who}, whose code is lost and cannot be built again: {built.message}"
            listen(Notice(text, warning=True))
