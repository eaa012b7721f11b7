"""The incumbent, what is in use today: built once, then a contender in the play-off."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.candidate import BuiltObject
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildWithHeader
from halide_autotune.autotune_loop.execute.tasks.own_schedule import BuildOwnSchedule, OwnSchedule
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.store.published import INCUMBENT, OWN, words_for
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.errors import GeneratorError, SdkError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.schedule.header import read_schedule

IncumbentBuild = Future[BuiltObject | GeneratorFailure | SdkError] | Future[OwnSchedule | GeneratorFailure]


@dataclass(frozen=True)
class Incumbent:
    """A built incumbent.

    Attributes:
        name: INCUMBENT for a header, OWN for the generator's own schedule.
        symbol: of its kernel.
        folder: samples/<name>/<argset>, with its header; None if it has none.
    """

    name: str
    symbol: str
    folder: Path | None

    @property
    def label(self) -> str:
        """What messages call it."""
        return words_for(self.name)


def submit_incumbent(executor: Executor, store: RunStore, context: RunContext, index: int) -> IncumbentBuild | None:
    """Start to build the incumbent's kernel; None without one.

    Raises:
        GeneratorError: the file is not a schedule header.
    """
    task = context.tasks[index]
    if task.incumbent is not None:
        symbol = f"{task.function_name}_incumbent_a{index}"
        return executor.submit(BuildWithHeader(store.objects / symbol, index, symbol, read_schedule(task.incumbent)))
    if task.schedules_itself:
        symbol = f"{task.function_name}_own_a{index}"
        return executor.submit(BuildOwnSchedule(store.objects / symbol, index, symbol))
    return None


def keep_incumbent(
    store: RunStore, index: int, task: TuningTask, built: BuiltObject | OwnSchedule | GeneratorFailure | SdkError
) -> Incumbent | GeneratorFailure:
    """Copy its header into the run folder. The failure is that of the generator's own schedule.

    Raises:
        GeneratorError: the header does not fit the generator.
        SdkError: this machine cannot apply it.
    """
    if isinstance(built, OwnSchedule):
        folder = store.keep_header(OWN, index, built.header_text) if built.header_text else None
        return Incumbent(OWN, built.built.symbol, folder)
    if task.incumbent is None:
        assert isinstance(built, GeneratorFailure), "only the own schedule is built without a header"
        return built
    if isinstance(built, GeneratorFailure):
        raise GeneratorError(
            f"The incumbent {task.incumbent} does not fit this generator: {built.message}",
            next_step="Pass a header of this generator, or omit --incumbent.",
        )
    if isinstance(built, SdkError):
        raise built
    return Incumbent(INCUMBENT, built.symbol, store.keep_header(INCUMBENT, index, read_schedule(task.incumbent)))
