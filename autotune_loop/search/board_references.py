"""Further schedules to compare boards by: the reference alone cannot tell a slow board from an unlike one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import Future

from halide_autotune.autotune_loop.candidate import BuiltObject, Origin, SearchedSchedule, SearchFailure, SearchPoint
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Search
from halide_autotune.autotune_loop.execute.tasks.own_schedule import BuildOwn
from halide_autotune.autotune_loop.parameters.space import ParameterSpace, set_sha256
from halide_autotune.autotune_loop.search.plan import greedy_point
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.build.executable import KernelObject
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.process.content_cache import file_sha256

_SEED = 1
# Enough for a schedule unlike the greedy one, too little for a slow one.
_DROPOUT = 10
_PARAMETER_SETS = 2

BoardReferences = Sequence[Future[SearchedSchedule | SearchFailure] | Future[BuiltObject | GeneratorFailure]]


def submit_board_references(
    executor: Executor, store: RunStore, context: RunContext, task_index: int
) -> BoardReferences:
    """Start to build them; none if the run only ever had one device."""
    if len(context.devices) < 2 and not store.database.calibrations():
        return ()
    space = context.tasks[task_index].space
    if space is not None:
        return _other_parameters(executor, store, context.tasks[task_index].function_name, task_index, space)
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


def _other_parameters(
    executor: Executor, store: RunStore, name: str, task_index: int, space: ParameterSpace
) -> BoardReferences:
    """The generator's own schedule with parameters unlike the default ones."""
    futures = []
    for seed in range(_PARAMETER_SETS):
        values = space.random_set(random.Random(seed))
        if values is not None and values != space.defaults:
            symbol = f"{name}_board_a{task_index}_{set_sha256(values)[:8]}"
            futures.append(executor.submit(BuildOwn(store.objects / symbol, task_index, symbol, values)))
    return futures


def built_kernels(references: BoardReferences) -> list[KernelObject]:
    """The kernels that were built, each schedule once."""
    by_schedule: dict[str, KernelObject] = {}
    for future in references:
        found = future.result()
        if isinstance(found, BuiltObject):
            by_schedule.setdefault(found.symbol, KernelObject(found.symbol, found.object_path))
        if isinstance(found, SearchedSchedule) and found.built is not None:
            kernel = KernelObject(found.built.symbol, found.built.object_path)
            by_schedule.setdefault(found.schedule_sha256, kernel)
    return list(by_schedule.values())
