"""Which workers are in the farm, as a run sees it, and where the run stands in the queue."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from distributed import Client

from halide_autotune.autotune_loop.events import FarmQueue, Listener, Notice
from halide_autotune.autotune_loop.farm.device import Announcement, FarmDevice, read_announcement
from halide_autotune.autotune_loop.farm.fair_share import FairShare
from halide_autotune.autotune_loop.farm.state import FarmRun
from halide_autotune.autotune_loop.farm.told import Count, DurationS, read_told
from halide_autotune.autotune_loop.farm.use import FarmUse
from halide_autotune.targets.errors import FarmError
from halide_autotune.targets.values.checks import number, whole_number

_BEAT_S = 0.5
_FIRST_BEAT_S = 20.0
_ANSWER_S = 3.0
# So many beats in a row without an answer are told; one is missed, too, by a process that was stopped itself.
_TOLD_AFTER = 2
# A scheduler that does not answer for so long is taken for gone, and so are the devices.
_SILENCE_S = 15.0
# The connection is made anew after so many answers in a row that do not know of it.
_UNKNOWN_TO_LEAVE = 2

# Told the names of devices that no worker has any more, and None when nobody builds; runs on the client's loop.
ResourcesLeft = Callable[[set[str | None]], Awaitable[None]]

_WORTH_TELLING_S = 2.0


@dataclass(frozen=True)
class BeatAnswer:
    """What a scheduler says to a beat.

    Attributes:
        floor_s: the least virtual time of the other runs.
        version: of the list of workers.
        is_known: the scheduler has a connection of this run's client.
        workers: address → what the worker says of itself; None where the list is as it was.
        position, start_s: the run's place in the queue; None where it waits for nothing.
    """

    floor_s: Annotated[float, number(-1e12, 1e12)]
    version: Annotated[int, whole_number(0, 2**62)]
    is_known: bool
    workers: Mapping[str, object] | None = None
    position: Count | None = None
    start_s: DurationS = 0.0


def read_workers(told: Mapping[str, object]) -> dict[str, Announcement]:
    """The workers in a scheduler's answer; one that says what cannot be is left out."""
    workers = {}
    for address, said in told.items():
        with contextlib.suppress(FarmError):
            workers[address] = read_announcement(said)
    return workers


class WorkerRegistry:
    """Asks the scheduler's ledger twice a second, on the client's loop.

    Args:
        share: the run's, which it tells the others' virtual time.
        listen: told where the run stands in the queue, and when the scheduler is away and back.
    """

    def __init__(
        self,
        client: Client,
        run_id: str,
        farm: FarmUse,
        share: FairShare,
        resources_left: ResourcesLeft,
        listen: Listener,
    ) -> None:
        self._client = client
        self._run_id = run_id
        self._farm = farm
        self._share = share
        self._resources_left = resources_left
        self._listen = listen
        self._queue = QueueWatch(listen)
        self._lock = threading.Lock()
        self._version = -1
        self._devices: dict[str, FarmDevice] = {}
        self._dask_workers: dict[str, str] = {}
        self._arrived: list[str] = []
        self._heard_s = time.monotonic()
        self._missed = self._unknown = 0
        self._task: Any = None
        self.build_slots = 0

    def start(self) -> None:
        """Join the queue, and see who is there.

        Raises:
            FarmError: the scheduler does not answer, or is none of ours.
        """
        loop = self._client.loop.asyncio_loop
        try:
            asyncio.run_coroutine_threadsafe(self._beat(), loop).result(_FIRST_BEAT_S)
        except (OSError, TimeoutError, AttributeError, KeyError, ValueError, FarmError) as error:
            raise FarmError(
                f"The scheduler at {self._farm.address.address} is not a farm's scheduler: {error}.",
                next_step="Start one with `sdk farm scheduler` of this SDK's version.",
            ) from error
        self._task = asyncio.run_coroutine_threadsafe(self._beat_on(), loop)

    def stop(self) -> None:
        """No beat begins any more."""
        if self._task is not None:
            self._task.cancel()

    def has(self, device_name: str) -> bool:
        """Whether a worker has the device."""
        return device_name in self._devices

    def arrivals(self) -> list[str]:
        """Devices for the run that have come, or come back, since this was last asked."""
        with self._lock:
            arrived, self._arrived = self._arrived, []
            return arrived

    @property
    def is_heard(self) -> bool:
        """Whether the scheduler answers."""
        return self._missed == 0

    def dask_workers(self) -> dict[str, str]:
        """The address of one Dask worker of each worker, by the workers' ids."""
        return dict(self._dask_workers)

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_S)
            try:
                await self._beat()
            except Exception:  # whatever Dask makes of a connection that breaks
                self._missed += 1
                if self._missed == _TOLD_AFTER:
                    self._tell(
                        f"The scheduler at {self._farm.address.address} does not answer. It is looked for; until it is"
                        " back, nothing is timed, and schedules are built on this machine.",
                        warning=True,
                    )
                if self._missed >= _TOLD_AFTER and time.monotonic() - self._heard_s > _SILENCE_S:
                    self._version = -1
                    await self._take({})

    def _tell(self, text: str, *, warning: bool = False) -> None:
        with contextlib.suppress(Exception):  # who shows it is not part of the run
            self._listen(Notice(text, warning))

    async def _beat(self) -> None:
        share = self._share
        run = FarmRun(
            run_id=self._run_id,
            client=self._client.id,
            user=self._farm.user,
            title=self._farm.title,
            priority=self._farm.priority.value,
            virtual_s=share.virtual_s,
            estimate_s=share.estimate_s,
            under_way=share.under_way,
        )
        beat = self._client.scheduler.sdk_beat(run=msgspec.to_builtins(run), known=self._version)
        answer = read_told(BeatAnswer, await asyncio.wait_for(beat, _ANSWER_S))
        self._heard_s = time.monotonic()
        missed, self._missed = self._missed, 0
        if missed >= _TOLD_AFTER:
            self._tell(f"The scheduler at {self._farm.address.address} answers again.")
        self._leave_if_unknown(known=answer.is_known)
        share.others_are_at(answer.floor_s)
        if answer.workers is not None:
            self._version = answer.version
            await self._take(read_workers(answer.workers))
        if answer.position is not None:
            with contextlib.suppress(Exception):  # who shows it is not part of the run
                self._queue.stands_at(answer.position, answer.start_s)

    def _leave_if_unknown(self, *, known: bool) -> None:
        """End a connection that only this side takes for one, as after a laptop has slept; Dask makes a new one."""
        is_ours = not known and self._client.status == "running" and self._client.scheduler_comm is not None
        self._unknown = self._unknown + 1 if is_ours else 0
        if self._unknown >= _UNKNOWN_TO_LEAVE:
            self._unknown = 0
            self._client.scheduler_comm.comm.abort()

    async def _take(self, workers: Mapping[str, Announcement]) -> None:
        """Put the workers that are there in the place of those that were."""
        devices = [told.device for told in workers.values() if told.device is not None]
        wanted = {device.name: device for device in devices if self._farm.wish.takes(device)}
        with self._lock:
            gone: set[str | None] = {name for name in self._devices if name not in wanted}
            self._arrived += [name for name in wanted if name not in self._devices]
            self._devices = wanted
            self._dask_workers = {told.worker_id: address for address, told in workers.items()}
            had_slots, self.build_slots = self.build_slots, sum(told.build_slots for told in workers.values())
        if had_slots and not self.build_slots:
            gone.add(None)
        if gone:
            await self._resources_left(gone)


class QueueWatch:
    """Tells a run's listener when it has to wait in its farm's queue:

    after two seconds of waiting, then when the position changes, and when it is over.
    """

    def __init__(self, listen: Listener) -> None:
        self._listen = listen
        self._since_s: float | None = None
        self._told: int | None = None

    def stands_at(self, position: int, start_s: float) -> None:
        """The run's place just now; called twice a second.

        Args:
            start_s: seconds until its next measurement begins.
        """
        now_s = time.monotonic()
        if position == 0:
            self._since_s = None
            if self._told is not None:
                self._told = None
                self._listen(FarmQueue(0, 0.0))
            return
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s - self._since_s >= _WORTH_TELLING_S and position != self._told:
            self._told = position
            self._listen(FarmQueue(position, start_s))
