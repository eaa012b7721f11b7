"""Resuming a run folder: what was measured counts, what was under way is recorded as interrupted."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence

from halide_autotune.autotune_loop.candidate import Candidate, Origin, TrainingSample, Yardstick
from halide_autotune.autotune_loop.events import Listener, Notice, SampleFailed
from halide_autotune.autotune_loop.run.task_state import LEARN_STAGE, TaskState
from halide_autotune.autotune_loop.store.run_database import NOT_DONE, RunDatabase
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.errors import WeightsError


def recover(
    store: RunStore, states: Sequence[TaskState], add_sample: Callable[[TrainingSample], None], listen: Listener
) -> int:
    """Restore every measurement and batch of the folder; return the newest round (0 in a new run).

    Samples that a killed process did not write are written now, from the database.
    """
    database = store.database
    account_for_unfinished(database)
    lost = 0
    measured = database.measured()
    for one in measured:
        state = states[one.candidate.task_index]
        state.add(one)
        if one.candidate.point.origin is Origin.FULL_BEAM:
            state.history.full_search_s = one.candidate.search_s
        if not one.candidate.has_features:
            continue
        sample = state.training_sample(store, one)
        try:
            if not store.has_sample(sample.featurization_path.parent):
                store.write_sample(sample)
            add_sample(sample)
        except WeightsError:
            lost += 1
    if measured:
        what = "parameter sets" if all(one.candidate.is_parameter_set for one in measured) else "schedules"
        listen(Notice(f"Resumed with {len(measured)} timed {what}."))
    if lost:
        listen(
            Notice(
                f"The cost model does not train on {lost} of them: their featurization files are missing or damaged.",
                warning=True,
            )
        )
    recover_yardsticks(store, states)
    for state in states:
        state.failures = _failures_before(database, state)
        _recover_confirmed(store, state)
    _recover_histories(database, states)
    return max(0, database.next_round() - 1)


def recover_yardsticks(store: RunStore, states: Sequence[TaskState]) -> None:
    """Go on with the newest yardstick whose object is there; the reference is built anew and always is."""
    for task_index, symbol, relative, log_error in store.database.yardsticks():
        state, kernels = states[task_index], store.kernels([symbol])
        first = state.yardsticks[0] if state.yardsticks else None
        if first is not None and symbol != first.kernel.name and kernels:
            state.use_yardstick(Yardstick(kernels[0], first.scale, relative, log_error))


def _recover_confirmed(store: RunStore, state: TaskState) -> None:
    """Keep what a play-off of an earlier process has confirmed, unless it has not met what is now to be beaten."""
    confirmed, incumbent = store.confirmed(state.task_index), state.incumbent
    if confirmed is not None and incumbent is not None:
        than = "" if confirmed.speed_up is None else confirmed.speed_up.than
        if incumbent.name not in (than, confirmed.sample):
            return
    state.confirmed = confirmed


def _failures_before(database: RunDatabase, state: TaskState) -> int | None:
    """How many of a task's candidates have failed in earlier processes; None once one was timed, as no reference is."""
    if any(database.candidate(one.symbol) is not None for one in state.timed):
        return None
    return len(database.failure_reasons(state.task_index))


def settle_samples(store: RunStore, states: Sequence[TaskState]) -> None:
    """Write the samples again that were timed beside a yardstick, with what the run now knows of the reference's time.

    Those of other runs are trained on together with them.
    """
    for one in store.database.measured():
        if one.is_relative and one.candidate.has_features:
            sample = states[one.candidate.task_index].training_sample(store, one)
            with contextlib.suppress(WeightsError):  # its featurization was lost, which `recover` has told
                store.write_sample(sample)


def _recover_histories(database: RunDatabase, states: Sequence[TaskState]) -> None:
    """Restore what each batch has brought, which decides the next task; a batch that was begun is not begun again."""
    for task_index, next_round in database.next_rounds().items():
        states[task_index].history.started = next_round
    best_ms: dict[tuple[int, int], float] = {}
    for one in database.measured():
        key = (one.candidate.task_index, one.candidate.round_index)
        best_ms[key] = min(one.median_ms, best_ms.get(key, math.inf))
    for task_index, round_index, stages_s in database.batches():
        batch_s = sum(seconds for stage, seconds in stages_s.items() if stage != LEARN_STAGE)
        states[task_index].history.add(best_ms.get((task_index, round_index), math.inf), batch_s)


def left_over(database: RunDatabase, task_index: int) -> list[Candidate]:
    """What earlier processes have chosen, and had no time for, in the order of choosing."""
    left = {symbol for symbol, _, _ in database.unfinished(forgiven=NOT_DONE)}
    return [one for one in database.candidates(task_index) if one.symbol in left]


def account_for_unfinished(database: RunDatabase) -> None:
    """Record the candidates that an earlier process left with neither a time nor a failure."""
    for symbol, round_index, task_index in database.unfinished():
        message = "The run ended before this candidate was timed."
        failed = SampleFailed(round_index, task_index, None, "interrupted", NOT_DONE, message)
        database.add_failure(failed, symbol=symbol)
