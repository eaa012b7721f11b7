"""Tasks on a farm: over Dask to a worker that has the device or a free build slot, with the files that they need."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from distributed import Client
from distributed import Future as DaskFuture
from distributed.scheduler import KilledWorker, NoValidWorkerError

from autotune_loop.events import Listener, ignore
from autotune_loop.execute.answers import Answers
from autotune_loop.execute.file_sender import FileSender
from autotune_loop.execute.local_executor import LocalExecutor
from autotune_loop.execute.messages import MissingInput, Reply, TaskResult, encode_task, output_folder, read_reply
from autotune_loop.execute.task import BuildTask, FileKey, MeasureTask, Task
from autotune_loop.execute.worker_plugin import perform
from autotune_loop.farm.client import farm_client
from autotune_loop.farm.device import BUILD_RESOURCE, device_resource
from autotune_loop.farm.fair_share import FairShare
from autotune_loop.farm.ledger import task_key
from autotune_loop.farm.use import FarmUse
from autotune_loop.farm.worker_registry import QueueWatch, WorkerRegistry
from autotune_loop.specification.run_context import RunContext
from devices.device_trouble import DeviceTrouble, TroubleKind
from targets.errors import FarmError, SdkError

R = TypeVar("R")

# A build that was lost with its worker so often has perhaps killed them.
_MOST_BUILD_LOSSES = 5
# A build waits so long for a scheduler that is away.
_PATIENCE_S = 600.0
_LOOK_S = 1.0
# However often a worker restarts, a task that it takes so many files for is lost on it.
_MOST_DELIVERIES = 64
_GOODBYE_S = 40.0
# How Dask says that a task's worker is gone, and how a connection does.
_WORKER_DIED = (KilledWorker, NoValidWorkerError)
_CONNECTION_LOST = (OSError, TimeoutError, CancelledError)


@dataclass(eq=False)
class _Flight:
    """One task on its way.

    Attributes:
        inputs, message: the files that the task reads, and what its worker is sent.
        answer: what the run waits for; a measurement's fails with DeviceTrouble when its worker is lost.
        losses: workers that were lost with it.
        deliveries: how often a worker lacked something for it.
        charged_s: what the run was charged for it, until its time is known.
        submitted: the newest Dask future.
    """

    task: Task[Any]
    inputs: Mapping[Path, FileKey]
    message: bytes
    answer: Future[Any]
    losses: int = 0
    deliveries: int = 0
    charged_s: float = 0.0
    submitted: DaskFuture[Any] | None = None

    @property
    def device(self) -> str | None:
        """The device that it is for; None for a build."""
        return self.task.device_name if isinstance(self.task, MeasureTask) else None


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
        self._flights: set[_Flight] = set()
        self._building_here = 0
        self._lock = threading.Lock()
        self._share = FairShare(farm.priority.weight)
        self._build_share = FairShare(farm.priority.weight)
        with contextlib.ExitStack() as exits:
            exits.callback(self._close_flights)
            self._here = exits.enter_context(
                contextlib.closing(LocalExecutor(replace(context, devices=()), build_slots))
            )
            self._client: Client = exits.enter_context(farm_client(farm.address))
            self._sender = FileSender(self._client, self._run_id, context)
            self._registry = WorkerRegistry(
                self._client, self._run_id, farm, self._share, self._resources_left, QueueWatch(listen).stands_at
            )
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
        answer: Future[R] = Future()
        flight = _Flight(task, inputs, encode_task(self._run_id, task, inputs), answer)
        with self._lock:
            self._flights.add(flight)
        self._launch(flight)
        return answer

    def interrupt(self) -> None:
        """See `Executor.interrupt`."""
        self._here.interrupt()
        self._on_loop(self._sender.interrupt(self._registry.dask_workers()))

    def close(self) -> None:
        """See `Executor.close`."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self.interrupt()
        finally:
            self._exits.close()

    def _launch(self, flight: _Flight) -> None:
        device = flight.device
        if device is not None and not self._registry.has(device):
            self._land(flight, error=_worker_lost(device))
            return
        if device is None and (not self._registry.build_slots or self._building_here < self._farm.builds_here):
            self._build_here(flight)
            return
        share = self._share_of(flight)
        is_brief = isinstance(flight.task, MeasureTask) and flight.task.is_brief
        start_s, flight.charged_s = share.submitted(is_brief=is_brief)
        resource = BUILD_RESOURCE if device is None else device_resource(device)
        try:
            flight.submitted = self._client.submit(
                perform,
                flight.message,
                self._client.id,
                key=task_key(self._run_id, resource),
                pure=False,
                retries=0,
                resources={resource: 1},
                priority=-start_s,
            )
        except Exception as error:  # the client has been closed: its scheduler was away for too long
            share.done(flight.charged_s, None)
            self._land(flight, error=error if device is None else _worker_lost(device))
        else:
            self._on_loop(self._follow(flight, flight.submitted))

    def _share_of(self, flight: _Flight) -> FairShare:
        return self._build_share if flight.device is None else self._share

    def _build_here(self, flight: _Flight) -> None:
        with self._lock:
            self._building_here += 1

        def built(done: Future[Any]) -> None:
            with self._lock:
                self._building_here -= 1
            error = done.exception()
            self._land(flight, error=error) if error is not None else self._land(flight, result=done.result())

        self._here.submit(flight.task).add_done_callback(built)

    def _on_loop(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)

    async def _follow(self, flight: _Flight, submitted: DaskFuture[Any]) -> None:
        """Wait for a task's end, on Dask's loop, and pass its result on."""
        reply: Reply | None = None
        try:
            reply = read_reply(await self._answers.of(submitted))
        except Exception as error:
            is_raised = submitted.status == "error" and not isinstance(error, _WORKER_DIED)
            if is_raised or isinstance(error, FarmError):
                self._land(flight, error=error)
                return
        finally:
            took_s = reply.took_s if isinstance(reply, TaskResult) else None
            self._share_of(flight).done(flight.charged_s, took_s)
            submitted.release()
        if reply is None:
            await self._lost(flight)
        elif isinstance(reply, MissingInput):
            await self._deliver(flight, reply)
        else:
            await self._received(flight, reply)

    async def _received(self, flight: _Flight, result: TaskResult) -> None:
        try:
            if result.files:
                await asyncio.to_thread(result.unpack, output_folder(flight.task))
            answer = result.read_result(flight.task, flight.inputs)
        except (OSError, SdkError) as error:
            self._land(flight, error=error)
        else:
            self._land(flight, result=answer)

    async def _deliver(self, flight: _Flight, missing: MissingInput) -> None:
        """Send a worker what it lacks, and the task again."""
        flight.deliveries += 1
        try:
            if flight.deliveries > _MOST_DELIVERIES:
                raise FarmError(f"The worker at {missing.address} takes no files.")
            await self._sender.deliver(missing, flight.inputs)
        except Exception:  # whatever it is, this worker has not got what it needs
            await self._lost(flight)
        else:
            self._launch(flight)

    async def _lost(self, flight: _Flight) -> None:
        """A task's worker is gone: a build is done again; who measures decides about a measurement."""
        if not self._is_open:
            self._land(flight, error=FarmError("The run has ended."))
            return
        if flight.device is not None:
            self._land(flight, error=_worker_lost(flight.device))
            return
        flight.losses += 1
        message = ""
        if flight.losses >= _MOST_BUILD_LOSSES:
            message = f"{flight.losses} workers of the farm were lost during the same build, one after the other."
        elif not await self._scheduler_is_back():
            message = "The farm's scheduler is gone."
        if message:
            step = "Read the log of the farm's scheduler, then continue the run with --resume."
            self._land(flight, error=FarmError(message, next_step=step))
        else:
            self._launch(flight)

    async def _scheduler_is_back(self) -> bool:
        until_s = time.monotonic() + _PATIENCE_S
        while self._is_open and not self._registry.is_heard and time.monotonic() < until_s:
            await asyncio.sleep(_LOOK_S)
        return self._registry.is_heard

    async def _resources_left(self, devices: set[str | None]) -> None:
        """No worker has these devices any more, as far as the scheduler knows: nothing of theirs is waited for.

        Args:
            devices: None among them says that nobody builds any more.
        """
        with self._lock:
            flights = [flight for flight in self._flights if flight.device in devices]
        submitted = [flight.submitted for flight in flights if flight.submitted is not None]
        await self._client.cancel(submitted, reason="device-gone", msg="No worker of the farm has the device.")

    def _land(self, flight: _Flight, result: Any = None, error: BaseException | None = None) -> None:
        with self._lock:
            if flight not in self._flights:
                return
            self._flights.discard(flight)
        if error is not None:
            flight.answer.set_exception(error)
        else:
            flight.answer.set_result(result)

    def _close_flights(self) -> None:
        with self._lock:
            flights = list(self._flights)
        for flight in flights:
            self._land(flight, error=FarmError("The run has ended."))

    def _say_goodbye(self) -> None:
        """Give the devices back, and have every worker forget the run."""
        self._registry.stop()
        goodbye = self._sender.end_run(self._registry.dask_workers())
        told = asyncio.run_coroutine_threadsafe(goodbye, self._client.loop.asyncio_loop)
        # A worker that does not hear it ends the run by itself, once the scheduler has forgotten this client.
        with contextlib.suppress(*_CONNECTION_LOST):
            told.result(_GOODBYE_S)


def _worker_lost(device: str) -> DeviceTrouble:
    return DeviceTrouble(
        TroubleKind.LOST,
        f"The farm's worker that serves {device} is gone.",
        next_step="Run `sdk farm status`, and read the worker's log.",
    )
