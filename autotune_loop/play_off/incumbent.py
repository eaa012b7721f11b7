"""The incumbent, the header in use today: built once, then a contender in the play-off."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.candidate import BuiltObject
from autotune_loop.execute.build_tasks import BuildWithHeader
from autotune_loop.execute.executor import Executor
from autotune_loop.specification.run_context import RunContext
from autotune_loop.store.run_store import RunStore
from targets.errors import GeneratorError, SdkError
from targets.generator.run import GeneratorFailure
from targets.schedule.header import read_schedule

IncumbentBuild = Future[BuiltObject | GeneratorFailure | SdkError]


@dataclass(frozen=True)
class Incumbent:
    """A built incumbent.

    Attributes:
        symbol: of its kernel.
        folder: samples/incumbent/<argset>, with its header.
    """

    symbol: str
    folder: Path


def submit_incumbent(
    executor: Executor, store: RunStore, context: RunContext, index: int, header: Path
) -> IncumbentBuild:
    """Start to build the incumbent's kernel.

    Raises:
        GeneratorError: the file is not a schedule header.
    """
    symbol = f"{context.tasks[index].function_name}_incumbent_a{index}"
    return executor.submit(BuildWithHeader(store.objects / symbol, index, symbol, read_schedule(header)))


def keep_incumbent(
    store: RunStore, index: int, header: Path, built: BuiltObject | GeneratorFailure | SdkError
) -> Incumbent:
    """Copy its header into the run folder.

    Raises:
        GeneratorError: the header does not fit the generator.
        SdkError: this machine cannot apply it.
    """
    if isinstance(built, GeneratorFailure):
        raise GeneratorError(
            f"The incumbent {header} does not fit this generator: {built.message}",
            next_step="Pass a header of this generator, or omit --incumbent.",
        )
    if isinstance(built, SdkError):
        raise built
    return Incumbent(built.symbol, store.keep_header("incumbent", index, read_schedule(header)))
