"""The work of a run, submitted through dask.distributed: on this machine, or over a farm."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from distributed import Client
from distributed import Future as DaskFuture
from distributed.scheduler import KilledWorker, NoValidWorkerError

from autotune_loop.events import Listener, ignore
from autotune_loop.execute import tasks
from autotune_loop.execute.answers import Answers
from autotune_loop.execute.file_sender import Courier
from autotune_loop.execute.in_process import in_process_farm
from autotune_loop.execute.order import Done, Order, Wanting, make_order, perform
from autotune_loop.execute.queue_watch import QueueWatch
from autotune_loop.execute.run_worker import RunWorker, working_for
from autotune_loop.execute.worker import FarmMember, device_resource
from autotune_loop.execute.worker_registry import Roster
from autotune_loop.farm.client import farm_client
from autotune_loop.farm.device import BUILD_RESOURCE
from autotune_loop.farm.fair_share import FairShare
from autotune_loop.farm.ledger import task_key
from autotune_loop.farm.use import FarmUse
from autotune_loop.specification.run_context import RunContext
from devices.device import Device
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.transport import Transport
from targets.errors import DeviceError, FarmError

_P = ParamSpec("_P")
_R = TypeVar("_R")

# A build that was lost with its member so often has perhaps killed them.
_MOST_BUILD_LOSSES = 5
# A build waits so long for a scheduler that is away.
_PATIENCE_S = 600.0
_LOOK_S = 1.0
# They say nothing about how long a measurement takes.
_BRIEF = (tasks.open_device, tasks.sense, tasks.forget)
# However often a member restarts, a task that it takes so many files for is lost on it.
_MOST_DELIVERIES = 64
_GOODBYE_S = 40.0
# How Dask says that a task's member is gone, and how a connection does.
_MEMBER_DIED = (KilledWorker, NoValidWorkerError)
_CONNECTION_LOST = (OSError, TimeoutError, CancelledError)


@dataclass(eq=False)
class _Flight:
    """One task on its way.

    Attributes:
        answer: what the run waits for; a measurement's fails with DeviceTrouble when its member is lost.
        losses: members that were lost with it.
        deliveries: how often a member lacked something for it.
        charged_s: what the run was charged for it, until its time is known.
        submitted: the newest Dask future.
    """

    order: Order
    answer: Future[Any]
    losses: int = 0
    deliveries: int = 0
    charged_s: float = 0.0
    submitted: DaskFuture[Any] | None = None


class Engine:
    """Builds go to any member with a free slot; a measurement goes to the member that has the device.

    It is alone on the device, unless that times several at once.

    A context manager; leaving it stops what runs.

    Args:
        build_slots: candidates built at once on this machine; on a farm, where no member builds.
        farm: None keeps everything on this machine.
        listen: told where the run stands in a farm's queue.

    Raises:
        FarmError: the farm cannot be used; when it is entered.
    """

    def __init__(
        self, context: RunContext, build_slots: int, farm: FarmUse | None = None, listen: Listener = ignore
    ) -> None:
        self._context = context
        self._listen = listen
        self._own_build_slots = build_slots
        self._farm = farm
        self._run_id = secrets.token_hex(6)
        self._flights: set[_Flight] = set()
        self._building_here = 0
        self._lock = threading.Lock()
        self._exits = contextlib.ExitStack()
        self._is_open = False

    def __enter__(self) -> Engine:
        with contextlib.ExitStack() as exits:
            exits.callback(self._close_flights)
            self._client: Client
            self._member: FarmMember | None = None
            self._roster: Roster | None = None
            weight = 1.0 if self._farm is None else self._farm.priority.weight
            self._share = FairShare(weight)
            self._build_share = FairShare(weight)
            if self._farm is None:
                self._client, self._member = exits.enter_context(in_process_farm(self._context, self._own_build_slots))
                self._member.adopt_run(self._run_id, self._context)
                self._home = self._member.run(self._run_id)
            else:
                self._home = RunWorker(self._context, _no_device)
                exits.callback(self._home.close)
                self._client = exits.enter_context(farm_client(self._farm.address))
                self._courier = Courier(self._client, self._run_id, self._context)
                queued = QueueWatch(self._listen).stands_at
                self._roster = Roster(self._client, self._run_id, self._farm, self._share, self._resources_left, queued)
                exits.callback(self._say_goodbye)
                self._roster.start()
            self._answers = Answers(self._client)
            exits.callback(self._answers.close)
            self._here = exits.enter_context(ThreadPoolExecutor(self._own_build_slots, "build-here"))
            self._exits = exits.pop_all()
        self._is_open = True
        return self

    @property
    def build_slots(self) -> int:
        """Candidates that are built at once, here and by the farm's members."""
        if self._farm is None or self._roster is None:
            return self._own_build_slots
        return self._roster.build_slots + self._farm.builds_here or self._own_build_slots

    def arrivals(self) -> list[str]:
        """Devices for this run that have come, or come back, since this was last asked."""
        return [] if self._roster is None else self._roster.arrivals()

    def submit_here(self, task: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> Future[_R]:
        """Run `task` on this machine, for what is better not sent elsewhere."""

        def run() -> _R:
            with working_for(self._home):
                return task(*args, **kwargs)

        return self._here.submit(run)

    def submit_build(self, task: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> Future[_R]:
        """Run `task` where a build slot is free; the files that it makes come back."""
        assert not kwargs, "tasks take their arguments by position"
        return self._submit(task, args, None)

    def submit_measure(
        self, device_name: str, task: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_R]:
        """Run `task` where the device is, alone on it unless that times several at once.

        The future fails with DeviceTrouble (LOST) when the device's member is lost; the task may have been run.
        """
        assert not kwargs, "tasks take their arguments by position"
        return self._submit(task, args, device_name)

    def interrupt(self) -> None:
        """Kill the child processes of every task of this run that is under way; their results say so."""
        self._home.interrupt()
        if self._roster is not None:
            self._on_loop(self._courier.interrupt(self._roster.workers_by_member()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        try:
            self.interrupt()
        finally:
            self._exits.close()

    def _submit(self, task: Callable[..., Any], args: tuple[Any, ...], device: str | None) -> Future[Any]:
        client_id = None if self._roster is None else self._client.id
        order = make_order(self._run_id, task, args, device, client_id)
        flight = _Flight(order, Future())
        with self._lock:
            self._flights.add(flight)
        self._launch(flight)
        return flight.answer

    def _launch(self, flight: _Flight) -> None:
        order = flight.order
        if order.device is not None and self._roster is not None and not self._roster.has(order.device):
            self._land(flight, error=_member_lost(order.device))
            return
        if order.device is None and self._is_for_here():
            self._build_here(flight)
            return
        share = self._build_share if order.device is None else self._share
        start_s, flight.charged_s = share.submitted(is_brief=order.task in _BRIEF)
        resource = BUILD_RESOURCE if order.device is None else device_resource(order.device)
        try:
            flight.submitted = self._client.submit(
                perform,
                order,
                key=task_key(self._run_id, resource),
                pure=False,
                retries=0,
                resources={resource: 1},
                priority=-start_s,
            )
        except Exception as error:  # the client has been closed: its scheduler was away for too long
            share.done(flight.charged_s, None)
            self._land(flight, error=_member_lost(order.device) if order.device is not None else error)
        else:
            self._on_loop(self._follow(flight, flight.submitted))

    def _is_for_here(self) -> bool:
        """Whether this machine is to take a build, beside the farm or because no member builds."""
        if self._farm is None or self._roster is None:
            return False
        return not self._roster.build_slots or self._building_here < self._farm.builds_here

    def _build_here(self, flight: _Flight) -> None:
        with self._lock:
            self._building_here += 1

        def built(done: Future[Any]) -> None:
            with self._lock:
                self._building_here -= 1
            error = done.exception()
            self._land(flight, error=error) if error is not None else self._land(flight, result=done.result())

        self.submit_here(flight.order.task, *flight.order.arguments).add_done_callback(built)

    def _on_loop(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)

    async def _follow(self, flight: _Flight, submitted: DaskFuture[Any]) -> None:
        """Wait for a task's end, on Dask's loop, and pass its result on."""
        share = self._build_share if flight.order.device is None else self._share
        answer: Done | Wanting | None = None
        try:
            answer = await self._answers.of(submitted)
        except Exception as error:
            if submitted.status == "error" and not isinstance(error, _MEMBER_DIED):
                self._land(flight, error=error)
                return
        finally:
            share.done(flight.charged_s, answer.took_s if isinstance(answer, Done) else None)
            submitted.release()
        if answer is None:
            await self._lost(flight)
        elif isinstance(answer, Wanting):
            await self._deliver(flight, answer)
        else:
            await self._received(flight, answer)

    async def _received(self, flight: _Flight, done: Done) -> None:
        try:
            if done.files:
                await asyncio.to_thread(done.unpack, flight.order.folder)
        except (OSError, FarmError) as error:
            self._land(flight, error=error)
        else:
            self._land(flight, result=done.result)

    async def _deliver(self, flight: _Flight, wanting: Wanting) -> None:
        """Send a member what it lacks, and the task again."""
        flight.deliveries += 1
        try:
            if flight.deliveries > _MOST_DELIVERIES:
                raise FarmError(f"The member {wanting.worker} takes no files.")
            await self._courier.deliver(wanting, flight.order.files)
        except Exception:  # whatever it is, this member has not got what it needs
            await self._lost(flight)
        else:
            self._launch(flight)

    async def _lost(self, flight: _Flight) -> None:
        """A task's member is gone: a build is done again; who measures decides about a measurement."""
        if flight.order.device is not None:
            self._land(flight, error=_member_lost(flight.order.device))
            return
        flight.losses += 1
        message = ""
        if flight.losses >= _MOST_BUILD_LOSSES:
            message = f"{flight.losses} members of the farm were lost with one build, one after the other."
        elif not await self._scheduler_is_back():
            message = "The farm's scheduler is gone."
        if message or not self._is_open:
            error = FarmError(message or "The run has ended.", next_step="Look at the farm's logs; --resume goes on.")
            self._land(flight, error=error)
        else:
            self._launch(flight)

    async def _scheduler_is_back(self) -> bool:
        until_s = time.monotonic() + _PATIENCE_S
        while self._is_open and self._roster is not None and not self._roster.is_heard:
            if time.monotonic() > until_s:
                return False
            await asyncio.sleep(_LOOK_S)
        return True

    async def _resources_left(self, devices: set[str | None]) -> None:
        """No member has these devices any more, as far as the scheduler knows: nothing of theirs is waited for.

        Args:
            devices: None among them says that nobody builds any more.
        """
        with self._lock:
            flights = [flight for flight in self._flights if flight.order.device in devices]
        submitted = [flight.submitted for flight in flights if flight.submitted is not None]
        await self._client.cancel(submitted, reason="device-gone", msg="No member of the farm has the device.")

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
        """Give the devices back, and have every member forget the run."""
        assert self._roster is not None, "only a farm's members are left behind"
        self._roster.stop()
        goodbye = self._courier.end_run(self._roster.workers_by_member())
        told = asyncio.run_coroutine_threadsafe(goodbye, self._client.loop.asyncio_loop)
        # A member that does not hear it ends the run by itself, once the scheduler has forgotten this client.
        with contextlib.suppress(*_CONNECTION_LOST):
            told.result(_GOODBYE_S)


def _member_lost(device: str) -> DeviceTrouble:
    return DeviceTrouble(
        TroubleKind.LOST,
        f"The farm's member that serves {device} is gone.",
        next_step="Look at `sdk farm status` and the member's log.",
    )


def _no_device(name: str) -> tuple[Device, Callable[[], Transport]]:
    raise DeviceError(f"{name} is measured on by the farm, not here.")
