"""What every member is told of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autotune_loop.execute.run_files import FileKey
from autotune_loop.specification.run_context import RunContext
from devices.local.cores import CorePlan


@dataclass(frozen=True)
class RunTicket:
    """A run as its members see it.

    Attributes:
        run_id: unique.
        context: the run; nothing in it is a path, a device or a secret of the user's machine.
        generators: the file of each task's generator.
        inputs: argument → runner input file.
        threads: Halide threads that a kernel runs with.
    """

    run_id: str
    context: RunContext
    generators: tuple[FileKey, ...]
    inputs: Mapping[str, FileKey]
    threads: int


def run_ticket(
    run_id: str, context: RunContext, generators: Sequence[FileKey], inputs: Mapping[str, FileKey]
) -> RunTicket:
    """The ticket of a run, with what concerns only the user's machine left out."""
    nowhere = Path()
    travelling = replace(
        context,
        tasks=tuple(
            replace(task, reference=replace(task.reference, file=Path(key.name)), incumbent=None)
            for task, key in zip(context.tasks, generators, strict=True)
        ),
        inputs=replace(context.inputs, files={}),
        devices=(),
        connections=None,
        cores=CorePlan(frozenset(), frozenset()),
        cache_folder=nowhere,
        work_folder=nowhere,
        lock_folder=nowhere,
        environment={},
        ndk_root=None,
    )
    threads = context.devices[0].threads if context.devices else context.parallelism
    return RunTicket(run_id, travelling, tuple(generators), inputs, threads)
