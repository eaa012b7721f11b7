"""Tasks in threads of this process; the real work is in child processes and on devices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from halide_autotune.autotune_loop.execute.tasks.task import BuildTask, MeasureTask, Task
from halide_autotune.autotune_loop.execute.worker_state import WorkerState
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.devices.device import Device
from halide_autotune.devices.remote.open import device_transport
from halide_autotune.devices.transport import Transport
from halide_autotune.targets.errors import DeviceError, FarmError
from halide_autotune.targets.process.content_cache import ContentCache

R = TypeVar("R")


class LocalExecutor:
    """See `Executor`.

    Args:
        context: its devices are those that tasks can be submitted for.
        build_slots: candidates built at once.
    """

    def __init__(self, context: RunContext, build_slots: int) -> None:
        self.build_slots = build_slots
        self._context = context
        self._state = WorkerState(context, self._find_device)
        self._builds = ThreadPoolExecutor(build_slots, "build")
        # What is linked need not wait for the candidates of the next batch.
        self._links = ThreadPoolExecutor(build_slots, "link")
        self._devices = {
            device.name: ThreadPoolExecutor(device.at_once, f"measure-{device.name}") for device in context.devices
        }
        self._closed = threading.Event()

    def submit(self, task: Task[R]) -> Future[R]:
        """See `Executor.submit`."""
        return self._pool(task).submit(self._run, task)

    def _pool(self, task: Task[R]) -> ThreadPoolExecutor:
        if isinstance(task, BuildTask):
            return self._links if task.runs_here else self._builds
        assert isinstance(task, MeasureTask), "a task builds or measures"
        return self._devices[task.device_name]

    def _run(self, task: Task[R]) -> R:
        if self._closed.is_set():
            raise FarmError("The run has ended.")
        return task.run(self._state)

    def arrivals(self) -> list[str]:
        """See `Executor.arrivals`: a run's own devices are all there from the start."""
        return []

    def interrupt(self) -> None:
        """See `Executor.interrupt`."""
        self._state.interrupt()

    def close(self) -> None:
        """See `Executor.close`."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._state.close()
        for pool in (self._builds, self._links, *self._devices.values()):
            pool.shutdown()

    def _find_device(self, name: str) -> tuple[Device, Callable[[], Transport]]:
        context = self._context
        device = next((device for device in context.devices if device.name == name), None)
        if device is None:
            raise DeviceError(f"{name} is not a device of this run.")
        return device, lambda: device_transport(
            device,
            context.profile,
            context.workspace.work_folder / "device",
            context.workspace.environment,
            context.workspace.cores.measure,
            context.workspace.connections,
            ContentCache(context.workspace.cache_folder),
        )
