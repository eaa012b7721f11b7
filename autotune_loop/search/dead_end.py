"""A first search that came to a dead end, or crashed: other starts may get further."""

from __future__ import annotations

from halide_autotune.autotune_loop.candidate import SearchedSchedule, SearchFailure, SearchPoint
from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Search
from halide_autotune.autotune_loop.search.plan import other_points
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.generator.run import GeneratorFailureReason
from halide_autotune.targets.process.stop_signal import StopSignal


def search_elsewhere(
    executor: Executor,
    store: RunStore,
    context: RunContext,
    task_index: int,
    first: SearchFailure,
    listen: Listener,
    stop: StopSignal,
) -> SearchedSchedule | SearchFailure:
    """Search from random starts and with the full beam, until one succeeds.

    Returns:
        what was found; else the failure, which names the Func of a dead end if the autoscheduler tells.
    """

    def search(point: SearchPoint, *, explains: bool = False) -> SearchedSchedule | SearchFailure:
        folder = context.workspace.work_folder / "probe" / f"{task_index}_{point.seed}_{point.beam_size}"
        return executor.submit(Search(folder, task_index, point, explains=explains)).result()

    failed = first
    if first.failure.reason is GeneratorFailureReason.DEAD_END:
        # The log of a search that explains itself is long, so that is asked for only now.
        explained = search(first.point, explains=True)
        failed = explained if isinstance(explained, SearchFailure) else first
    for point in other_points(context.spec.options.search.seed, task_index, store.updated_weights):
        if stop.is_set():
            break
        result = search(point)
        if isinstance(result, SearchedSchedule):
            text = f"{failed.failure.message} Another search succeeds, so the run goes on."
            listen(Notice(text, warning=True))
            return result
    return failed
