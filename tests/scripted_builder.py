"""A builder of batches whose tasks end as a test says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Event
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.search.batch_builder import BatchBuilder
from halide_autotune.autotune_loop.search.schedule_proposals import ScheduleProposals
from halide_autotune.autotune_loop.specification.build_limits import BuildLimits
from halide_autotune.autotune_loop.specification.options import Limits, RunOptions
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.scripted_executor import ScriptedExecutor


@contextlib.contextmanager
def builder(
    store: RunStore,
    script: Callable[[Task[Any]], object],
    budget_s: float = 100.0,
    full_search_limit_s: float | None = None,
) -> Iterator[tuple[BatchBuilder, list[Event]]]:
    """A builder whose tasks end as the script says."""
    heard: list[Event] = []
    context = SimpleNamespace(
        spec=SimpleNamespace(options=RunOptions.of(technique=["sampling"])),
        profile=SimpleNamespace(machine=SimpleNamespace(gpu=None)),
        tasks=[SimpleNamespace(function_name="blur", parameters={}, space=None)],
        workspace=SimpleNamespace(work_folder=store.work),
        limits=BuildLimits.of_run(Limits(budget_s=180.0, full_search_limit_s=full_search_limit_s), 1, 2**30),
    )
    with contextlib.closing(ScriptedExecutor(script)) as executor:
        deadline = Deadline.after(budget_s)
        yield (
            BatchBuilder(
                executor,
                store,
                cast(Any, context),
                ScheduleProposals(
                    executor, store, cast(Any, context), heard.append, lambda index, shape: (), StopSignal()
                ),
                lambda paths: [None] * len(paths),
                deadline,
                lambda: 8,
                heard.append,
                StopSignal(),
            ),
            heard,
        )


def no_task(task: Task[Any]) -> object:
    raise AssertionError(f"nothing is to be done, not even {task}")
