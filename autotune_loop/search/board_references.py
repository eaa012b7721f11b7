"""Further schedules to compare boards by: the reference alone cannot tell a slow board from an unlike one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from autotune_loop.candidate import Origin, SearchedSchedule, SearchFailure, SearchPoint
from autotune_loop.execute.build_tasks import Search
from autotune_loop.execute.executor import Executor
from autotune_loop.search.plan import greedy_point
from autotune_loop.specification.run_context import RunContext
from autotune_loop.store.run_store import RunStore
from targets.build.executable import KernelObject
from targets.process.content_cache import file_sha256

_SEED = 1
# Enough for a schedule unlike the greedy one, too little for a slow one.
_DROPOUT = 10

Searched = Sequence[Future[SearchedSchedule | SearchFailure]]


def submit_board_references(executor: Executor, store: RunStore, context: RunContext, task_index: int) -> Searched:
    """Start to build them; none if the run only ever had one device."""
    if len(context.devices) < 2 and not store.database.calibrations():
        return ()
    weights = store.updated_weights
    points = (
        greedy_point(_SEED, weights),
        SearchPoint(Origin.RANDOM, _SEED, beam_size=1, random_dropout=_DROPOUT, weights_path=weights),
    )
    # Other weights give another schedule, which a resumed run must not confuse with this one.
    prefix = f"{context.tasks[task_index].function_name}_board_a{task_index}_{file_sha256(weights)[:8]}"
    folder = context.workspace.work_folder / "board_references"
    return [
        executor.submit(Search(folder / f"{prefix}_{position}", task_index, point, f"{prefix}_{position}"))
        for position, point in enumerate(points)
    ]


def built_kernels(searched: Searched) -> list[KernelObject]:
    """The kernels that were built, each schedule once."""
    by_schedule: dict[str, KernelObject] = {}
    for future in searched:
        found = future.result()
        if isinstance(found, SearchedSchedule) and found.built is not None:
            kernel = KernelObject(found.built.symbol, found.built.object_path)
            by_schedule.setdefault(found.schedule_sha256, kernel)
    return list(by_schedule.values())
