"""Work submitted through dask.distributed: in-process threads by default, no ports opened."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from dask import config as dask_config
from distributed import Client, Scheduler, SpecCluster, Worker
from distributed import Future as DaskFuture

from autotune_loop.run_context import RunContext
from autotune_loop.run_worker import PLUGIN_NAME, RunWorker

_P = ParamSpec("_P")
_R = TypeVar("_R")

_BUILD_RESOURCE = "build"
_MEASURE_PRIORITY = 10
# Background work of Dask's that would disturb a measurement on this machine, and memory it need not keep.
_QUIET_CONFIG = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    # Its logs of events and transitions would grow with every task of a long run.
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.log-length": 100,
    "distributed.admin.low-level-log-length": 100,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.daemon": True,
}


class _PortlessScheduler(Scheduler):  # type: ignore[misc] # Dask has no type information
    """Without the HTTP server that Dask opens on a port even where there is no dashboard."""

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        """Open nothing."""


class _PortlessWorker(Worker):  # type: ignore[misc]
    """The same for a worker."""

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        """Open nothing."""


def device_resource(device_name: str) -> str:
    """The resource label of a device: one measurement at a time holds it."""
    return f"device:{device_name}"


class Engine:
    """A Dask client for one run: one worker builds, one worker per device measures.

    A context manager; leaving it stops what runs.
    """

    def __init__(self, context: RunContext, build_slots: int) -> None:
        self._context = context
        self._build_slots = build_slots

    def __enter__(self) -> Engine:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        # Dask's own scratch files go where they are removed with the run's.
        settings = dask_config.set({**_QUIET_CONFIG, "temporary-directory": str(self._context.work_folder)})
        with settings, warnings.catch_warnings():
            # It looks for this machine's address, which nobody is told here, and warns where there is none.
            warnings.simplefilter("ignore", RuntimeWarning)
            self._cluster = SpecCluster(
                workers=self._workers(),
                scheduler={"cls": _PortlessScheduler, "options": {"protocol": "inproc://", "dashboard": False}},
                silence_logs=logging.CRITICAL,
            )
            self._client = Client(self._cluster, set_as_default=False)
        self._client.register_plugin(RunWorker(self._context))
        return self

    def _workers(self) -> dict[str, Any]:
        shared = {"protocol": "inproc://", "dashboard": False, "memory_limit": 0}
        shared["local_directory"] = str(self._context.work_folder / "dask")
        build = {"nthreads": self._build_slots, "resources": {_BUILD_RESOURCE: self._build_slots}}
        workers = {"build": {"cls": _PortlessWorker, "options": {**shared, **build}}}
        for device in self._context.devices:
            resource = device_resource(device.name)
            options = {**shared, "nthreads": 1, "resources": {resource: 1}}
            workers[resource] = {"cls": _PortlessWorker, "options": options}
        return workers

    def submit_build(self, task: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> DaskFuture[_R]:
        """Run `task` on a worker that builds."""
        return self._client.submit(task, *args, **kwargs, pure=False, resources={_BUILD_RESOURCE: 1})

    def submit_measure(
        self, device_name: str, task: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs
    ) -> DaskFuture[_R]:
        """Run `task` on the worker that holds the device, alone on it."""
        resources = {device_resource(device_name): 1}
        return self._client.submit(task, *args, **kwargs, pure=False, resources=resources, priority=_MEASURE_PRIORITY)

    def interrupt(self) -> None:
        """Kill the child processes of every task under way; their results say so."""
        self._client.run(_interrupt)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._client.run(_interrupt)
        finally:
            self._client.close()
            self._cluster.close()


def _interrupt(dask_worker: Worker) -> None:
    plugin = dask_worker.plugins[PLUGIN_NAME]
    assert isinstance(plugin, RunWorker)
    plugin.interrupt()
