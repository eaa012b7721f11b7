"""What carries out a run's tasks: in this process, on a farm, or by a script in a test.

All implementations keep these promises; `tests/contract/test_executor.py` checks them.

Ownership. An executor is open when it has been made, and belongs to who made it, who closes it. It owns what is open
for the run: generators, device connections, leases. A task's files belong to who submits it: inputs stay as they are
until the future is done, and what the task makes is in its output folder by then.

Threads. Every method can be called from any thread, and none waits for a task. A future's callbacks are called on a
thread of the executor and must be short.

Consistency. A device carries out one task at a time, or as many as it can time at once, in the order in which they
were submitted; tasks of several devices and builds run beside each other, in any order. Builds are at most
`build_slots` at once. A result has the paths of who has submitted the task, wherever it was carried out.

Failures. What a task expects to go wrong is its result. Its future fails only with an error that `run` has raised, with
DeviceTrouble (LOST) when the worker of a measurement is gone, and with FarmError when the farm or the run has ended. A
build whose worker is gone is done again elsewhere; a measurement is not, because it may have been carried out: who has
submitted it decides.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol, TypeVar

from halide_autotune.autotune_loop.execute.tasks.task import Task

R = TypeVar("R")


class Executor(Protocol):
    """See the module for what it promises."""

    @property
    def build_slots(self) -> int:
        """Candidates that are built at once."""

    def submit(self, task: Task[R]) -> Future[R]:
        """Have a task carried out: a build where a slot is free, a measurement where its device is."""

    def arrivals(self) -> list[str]:
        """Return the devices for the run that have come, or come back, since this was last asked."""

    def interrupt(self) -> None:
        """Kill the child processes of every task that is under way; their results say so."""

    def close(self) -> None:
        """Stop what runs and give the devices back; tasks that have not begun fail with FarmError.

        Nothing when it is closed already.
        """
