"""Schedules that boards are compared by, beside the reference, which alone cannot tell a slow board from an odd one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from autotune_loop.candidate import Origin, SearchedSchedule, SearchFailure, SearchPoint
from autotune_loop.execute.build_tasks import SearchAndBuild
from autotune_loop.execute.executor import Executor
from autotune_loop.search.plan import greedy_point
from autotune_loop.specification.run_context import RunContext
from autotune_loop.store.run_store import RunStore
from targets.build.executable import KernelObject
from targets.process.content_cache import file_sha256

_SEED = 1
# Another schedule than the greedy one, and not a slow one.
_DROPOUT = 10

Searched = Sequence[Future[SearchedSchedule | SearchFailure]]


def submit_board_references(executor: Executor, store: RunStore, context: RunContext, task_index: int) -> Searched:
    """Begin to build them; none where the run has one device and always had."""
    if len(context.devices) < 2 and not store.database.calibrations():
        return ()
    weights = store.updated_weights
    points = (
        greedy_point(_SEED, weights),
        SearchPoint(Origin.RANDOM, _SEED, beam_size=1, random_dropout=_DROPOUT, weights_path=weights),
    )
    # Of other weights it is another schedule: a resumed run does not take one for the other.
    prefix = f"{context.tasks[task_index].function_name}_board_a{task_index}_{file_sha256(weights)[:8]}"
    folder = context.workspace.work_folder / "board_references"
    return [
        executor.submit(SearchAndBuild(folder / f"{prefix}_{position}", task_index, point, f"{prefix}_{position}"))
        for position, point in enumerate(points)
    ]


def built_kernels(searched: Searched) -> list[KernelObject]:
    """Those that could be built, each schedule once."""
    by_schedule: dict[str, KernelObject] = {}
    for future in searched:
        found = future.result()
        if isinstance(found, SearchedSchedule) and found.built is not None:
            kernel = KernelObject(found.built.symbol, found.built.object_path)
            by_schedule.setdefault(found.schedule_sha256, kernel)
    return list(by_schedule.values())
