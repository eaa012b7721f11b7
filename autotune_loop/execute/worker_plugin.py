"""What ties Dask workers to the farm worker whose devices and build slots they serve, and carries messages to it."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Any

import msgspec
from distributed import Worker, WorkerPlugin, get_worker
from distributed.worker import DEFAULT_METRICS, DEFAULT_STARTUP_INFORMATION

from halide_autotune.autotune_loop.execute.answers import send_answer
from halide_autotune.autotune_loop.execute.messages import FilePart, RemoteRun, TaskMessage, decode, encode
from halide_autotune.autotune_loop.execute.worker import FarmWorker
from halide_autotune.autotune_loop.farm.device import ANNOUNCEMENT, BUILD_RESOURCE, Announcement, device_resource
from halide_autotune.autotune_loop.farm.quiet_dask import forget_keys

PLUGIN_NAME = "sdk-worker"
_LOOK_ROUND_S = 2.0


def dask_worker_options(worker: FarmWorker) -> dict[str, dict[str, Any]]:
    """Return the keyword arguments of a Dask worker for each device and of one for builds, by their names.

    Each is a Dask worker of its own, because one whose most urgent task waits for one resource lets tasks for all
    others wait, too. A device's name is part of its Dask worker's: a scheduler takes no second one.
    """
    named = {device_resource(name): served.device.at_once for name, served in worker.devices.items()}
    if worker.build_slots:
        named[f"{BUILD_RESOURCE}:{worker.name}"] = worker.build_slots
    return {
        name: {
            "name": name,
            "nthreads": slots,
            "resources": {BUILD_RESOURCE if name.startswith(BUILD_RESOURCE) else name: slots},
            "local_directory": str(worker.workspace.work_folder / "dask"),
            "memory_limit": 0,
            "plugins": (FarmWorkerPlugin(worker, keeps_house=position == 0),),
            "startup_information": {**DEFAULT_STARTUP_INFORMATION, ANNOUNCEMENT: partial(_announcement, worker)},
            "metrics": {**DEFAULT_METRICS, ANNOUNCEMENT: partial(_report, worker)},
        }
        for position, (name, slots) in enumerate(named.items())
    }


# What the scheduler is told of a Dask worker, as Dask asks for it.


def _announcement(worker: FarmWorker, dask_worker: Worker) -> Any:
    served = worker.devices.get(dask_worker.name.removeprefix("device:"))
    device = None if served is None else served.announced
    return msgspec.to_builtins(Announcement(worker.name, worker.id, 0 if device else worker.build_slots, device))


def _report(worker: FarmWorker, dask_worker: Worker) -> Any:
    return msgspec.to_builtins(worker.report(dask_worker.name.removeprefix("device:")))


class FarmWorkerPlugin(WorkerPlugin):  # type: ignore[misc] # Dask has no type information
    """Gives the tasks of a Dask worker the farm worker that it belongs to.

    Args:
        keeps_house: this one of the worker's plug-ins ends what nobody needs any more.
    """

    name = PLUGIN_NAME

    def __init__(self, worker: FarmWorker, *, keeps_house: bool) -> None:
        self.worker = worker
        self._keeps_house = keeps_house
        self._house_keeping: asyncio.Task[None] | None = None

    def setup(self, worker: Worker) -> None:
        """Called by Dask, on the Dask worker's loop, when it starts."""
        if self._keeps_house:
            self._house_keeping = asyncio.ensure_future(self._keep_house(worker))

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the Dask worker ends."""
        if self._house_keeping is not None:
            self._house_keeping.cancel()

    async def _keep_house(self, dask_worker: Worker) -> None:
        missed: set[str] = set()
        while True:
            await asyncio.sleep(_LOOK_ROUND_S)
            forget_keys()
            # A scheduler that is away shows elsewhere; until it is back, nothing is ended.
            with contextlib.suppress(OSError, TimeoutError, ValueError):
                if runs := self.worker.runs:
                    live = set(await asyncio.wait_for(dask_worker.scheduler.sdk_live_runs(), _LOOK_ROUND_S))
                    # Missed twice: a user whose connection is being made again is forgotten for a moment.
                    for run_id in missed - live:
                        await asyncio.to_thread(self.worker.end_run, run_id)
                    missed = set(runs) - live
            await asyncio.to_thread(self.worker.close_idle)


def _worker_of(dask_worker: Worker) -> FarmWorker:
    plugin = dask_worker.plugins[PLUGIN_NAME]
    assert isinstance(plugin, FarmWorkerPlugin)
    return plugin.worker


# Dask calls these on Dask workers. They are all that it pickles for us, with the bytes of a message.


def perform(message: bytes, client_id: str) -> bytes:
    """Carry a task out; returns the reply, which is on its way to the client already unless it is large."""
    dask_worker = get_worker()
    reply = encode(_worker_of(dask_worker).perform(decode(message, TaskMessage), dask_worker.address))
    send_answer(dask_worker, client_id, reply)
    return reply


def receive_run(message: bytes, dask_worker: Worker) -> None:
    """Tell the worker of a run."""
    _worker_of(dask_worker).receive_run(decode(message, RemoteRun))


def receive_part(message: bytes, dask_worker: Worker) -> None:
    """Give the worker a piece of a file."""
    _worker_of(dask_worker).receive_file(decode(message, FilePart))


def interrupt(run_id: str, dask_worker: Worker) -> None:
    """Kill what a run's tasks have started on the worker."""
    _worker_of(dask_worker).interrupt(run_id)


async def end_run(run_id: str, dask_worker: Worker) -> None:
    """Have the worker close what it has open for a run."""
    await asyncio.to_thread(_worker_of(dask_worker).end_run, run_id)
