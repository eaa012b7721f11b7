"""Tasks on a farm: over Dask to a worker that has the device or a free build slot, with the files that they need."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from distributed import Client
from distributed import Future as DaskFuture
from distributed.scheduler import KilledWorker, NoValidWorkerError

from halide_autotune.autotune_loop.events import Listener, ignore
from halide_autotune.autotune_loop.execute.answers import Answers
from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.execute.file_sender import FileSender
from halide_autotune.autotune_loop.execute.local_executor import LocalExecutor
from halide_autotune.autotune_loop.execute.messages import (
    MissingInput,
    Reply,
    TaskResult,
    encode_task,
    output_folder,
    read_reply,
)
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import Measure, PrepareReference
from halide_autotune.autotune_loop.execute.tasks.task import BuildTask, FileKey, MeasureTask, Task
from halide_autotune.autotune_loop.execute.timing_message import check_asked
from halide_autotune.autotune_loop.execute.worker_plugin import perform
from halide_autotune.autotune_loop.farm.client import farm_client
from halide_autotune.autotune_loop.farm.device import BUILD_RESOURCE, device_resource
from halide_autotune.autotune_loop.farm.fair_share import FairShare
from halide_autotune.autotune_loop.farm.ledger import task_key
from halide_autotune.autotune_loop.farm.told import BadMessageError
from halide_autotune.autotune_loop.farm.use import FarmUse
from halide_autotune.autotune_loop.farm.worker_registry import WorkerRegistry
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.input_size import sizes_of
from halide_autotune.targets.errors import FarmError

R = TypeVar("R")

# A build that was lost with its worker so often has perhaps killed them.
_MOST_BUILD_LOSSES = 5
_LOOK_S = 0.5
# However often a worker restarts, a task that it takes so many files for is lost on it.
_MOST_DELIVERIES = 64
_GOODBYE_S = 40.0
# Of a scheduler that is away.
_BRIEF_GOODBYE_S = 2.0
# How Dask says that a task's worker is gone, and how a connection does.
_WORKER_DIED = (KilledWorker, NoValidWorkerError)
_CONNECTION_LOST = (OSError, TimeoutError, CancelledError)


class FarmExecutor:
    """See `Executor`.

    Args:
        build_slots: candidates built at once on this machine, where no worker of the farm builds.
        listen: told where the run stands in the farm's queue.

    Raises:
        FarmError: the farm cannot be used.
    """

    def __init__(self, context: RunContext, build_slots: int, farm: FarmUse, listen: Listener = ignore) -> None:
        self._is_open = True
        self._farm = farm
        self._run_id = secrets.token_hex(6)
        self._sizes = [size.label for size in sizes_of(context.inputs)]
        self._tasks: set[asyncio.Task[Any]] = set()
        # What Dask has been given, with the device that it is for; None for a build.
        self._submitted: dict[DaskFuture[bytes], str | None] = {}
        self._building_here = 0
        self._lock = threading.Lock()
        self._share = FairShare(farm.priority.weight)
        self._build_share = FairShare(farm.priority.weight)
        with contextlib.ExitStack() as exits:
            self._here = exits.enter_context(
                contextlib.closing(LocalExecutor(replace(context, devices=()), build_slots))
            )
            self._client: Client = exits.enter_context(farm_client(farm.address))
            exits.callback(self._end_tasks)
            self._sender = FileSender(self._client, self._run_id, context)
            self._registry = WorkerRegistry(self._client, self._run_id, farm, self._share, self._resources_left, listen)
            exits.callback(self._say_goodbye)
            self._registry.start()
            self._answers = Answers(self._client)
            exits.callback(self._answers.close)
            self._exits = exits.pop_all()

    @property
    def build_slots(self) -> int:
        """Candidates that are built at once, here and by the farm's workers."""
        return self._registry.build_slots + self._farm.builds_here or self._here.build_slots

    def arrivals(self) -> list[str]:
        """See `Executor.arrivals`."""
        return self._registry.arrivals()

    def submit(self, task: Task[R]) -> Future[R]:
        """See `Executor.submit`.

        Raises:
            FarmError: a file that the task reads is gone.
        """
        if isinstance(task, BuildTask) and task.runs_here:
            return self._here.submit(task)
        inputs = task.inputs()
        message = encode_task(self._run_id, task, inputs)
        with self._lock:
            if self._is_open:
                return self._on_loop(self._carry_out(task, inputs, message))
        ended: Future[R] = Future()
        ended.set_exception(_run_has_ended())
        return ended

    def interrupt(self) -> None:
        """See `Executor.interrupt`."""
        self._here.interrupt()
        self._on_loop(self._sender.interrupt(self._registry.dask_workers()))

    def close(self) -> None:
        """See `Executor.close`."""
        with self._lock:
            was_open, self._is_open = self._is_open, False
        if not was_open:
            return
        try:
            self.interrupt()
        finally:
            self._exits.close()

    def _on_loop(self, coroutine: Coroutine[Any, Any, R]) -> Future[R]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)

    async def _carry_out(self, task: Task[R], inputs: Mapping[Path, FileKey], message: bytes) -> R:
        """Have a task done on Dask's loop, until the run ends.

        Args:
            inputs, message: the files that the task reads, and what its worker is sent.
        """
        this = asyncio.current_task()
        assert this is not None
        self._tasks.add(this)
        this.add_done_callback(_look_at)
        try:
            return await self._result_of(task, inputs, message)
        except asyncio.CancelledError:
            raise _run_has_ended() from None
        finally:
            self._tasks.discard(this)

    async def _result_of(self, task: Task[R], inputs: Mapping[Path, FileKey], message: bytes) -> R:
        device = task.device_name if isinstance(task, MeasureTask) else None
        losses = deliveries = 0
        while True:
            if device is None and (not self._registry.build_slots or self._building_here < self._farm.builds_here):
                return await self._built_here(task)
            try:
                reply = await self._reply_to(task, device, message)
                if isinstance(reply, TaskResult):
                    return await self._taken(reply, task, inputs)
            except BadMessageError as error:
                if device is not None:
                    raise _no_sense(device, error) from error
                reply = None  # for a build that is as if its worker were gone
            deliveries += 1
            if reply is not None and deliveries <= _MOST_DELIVERIES and await self._delivered(reply, inputs):
                continue
            # The worker is gone: a build is done again; who measures decides about a measurement.
            if not self._is_open:
                raise _run_has_ended()
            if device is not None:
                raise self._lost(device)
            losses += 1
            await self._check_farm(losses)

    async def _taken(self, reply: TaskResult, task: Task[R], inputs: Mapping[Path, FileKey]) -> R:
        """A worker's result, with its files in their place."""
        if reply.files:
            await asyncio.to_thread(reply.unpack, output_folder(task))
        result = reply.read_result(task, inputs)
        if isinstance(result, Timing):
            assert isinstance(task, Measure | PrepareReference), "no other task gives a timing"
            symbol = task.symbol if isinstance(task, Measure) else task.reference.symbol
            check_asked(result, task.device_name, symbol, self._farm.wish.clock, self._sizes)
        return result

    async def _reply_to(self, task: Task[Any], device: str | None, message: bytes) -> Reply | None:
        """Give a task to Dask, and wait for its worker's reply; None when the worker was lost with it."""
        if device is not None and not self._registry.has(device):
            return None
        share = self._build_share if device is None else self._share
        start_s, charged_s = share.submitted(is_brief=isinstance(task, MeasureTask) and task.is_brief)
        resource = BUILD_RESOURCE if device is None else device_resource(device)
        submitted: DaskFuture[bytes] | None = None
        reply: Reply | None = None
        try:
            submitted = self._client.submit(
                perform,
                message,
                self._client.id,
                key=task_key(self._run_id, resource),
                pure=False,
                retries=0,
                resources={resource: 1},
                priority=-start_s,
            )
            self._submitted[submitted] = device
            reply = read_reply(await self._answers.of(submitted))
        except Exception as error:
            if submitted is None:  # the client has been closed: its scheduler was away for too long
                is_lost = device is not None
            else:
                is_lost = submitted.status != "error" or isinstance(error, _WORKER_DIED)
            if isinstance(error, FarmError) or not is_lost:
                raise
        finally:
            share.done(charged_s, reply.took_s if isinstance(reply, TaskResult) else None)
            if submitted is not None:
                self._submitted.pop(submitted, None)
                submitted.release()
        return reply

    def _lost(self, device: str) -> DeviceTrouble:
        if self._client.status == "running" and self._registry.is_heard:
            message, step = f"The farm's worker that serves {device} is gone.", "Run `sdk farm status`"
        else:
            message, step = f"The farm's scheduler, which leads to {device}, does not answer.", "Look whether it runs"
        return DeviceTrouble(TroubleKind.LOST, message, next_step=f"{step}, and read its log.")

    async def _built_here(self, task: Task[R]) -> R:
        self._building_here += 1
        try:
            return await asyncio.wrap_future(self._here.submit(task))
        finally:
            self._building_here -= 1

    async def _delivered(self, missing: MissingInput, inputs: Mapping[Path, FileKey]) -> bool:
        """Send a worker what it lacks; False when it has not got that, for whatever reason."""
        try:
            await self._sender.deliver(missing, inputs)
        except Exception:
            return False
        return True

    async def _check_farm(self, losses: int) -> None:
        """Before a build is done again, wait until it is known who builds: the farm's workers, or this machine alone.

        Raises:
            FarmError: the build has lost too many workers.
        """
        if losses >= _MOST_BUILD_LOSSES:
            raise FarmError(
                f"{losses} workers of the farm were lost during the same build, one after the other.",
                next_step="Read the log of the farm's scheduler, then continue the run with --resume.",
            )
        while self._is_open and self._registry.build_slots and not self._registry.is_heard:
            await asyncio.sleep(_LOOK_S)

    async def _resources_left(self, devices: set[str | None]) -> None:
        """No worker has these devices any more, as far as the scheduler knows: nothing of theirs is waited for.

        Args:
            devices: None among them says that nobody builds any more.
        """
        submitted = [future for future, device in self._submitted.items() if device in devices]
        await self._client.cancel(submitted, reason="device-gone", msg="No worker of the farm has the device.")

    def _end_tasks(self) -> None:
        async def end() -> None:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        self._on_loop(end()).result(_GOODBYE_S)

    def _say_goodbye(self) -> None:
        """Give the devices back, and have every worker forget the run."""
        self._registry.stop()
        told = self._on_loop(self._sender.end_run(self._registry.dask_workers()))
        # A worker that does not hear it ends the run by itself, once the scheduler has forgotten this client.
        with contextlib.suppress(*_CONNECTION_LOST):
            told.result(_GOODBYE_S if self._registry.is_heard else _BRIEF_GOODBYE_S)


def _look_at(task: asyncio.Task[Any]) -> None:
    """Where who asked has cancelled his future, nobody else does, which asyncio would print."""
    if not task.cancelled():
        task.exception()


def _run_has_ended() -> FarmError:
    return FarmError("The run has ended.")


def _no_sense(device: str, error: BadMessageError) -> DeviceTrouble:
    return DeviceTrouble(
        TroubleKind.PROTOCOL_ERROR,
        f"What the farm's worker that serves {device} says makes no sense. {error.message}",
        next_step="Read the worker's log, and start the worker again.",
    )
