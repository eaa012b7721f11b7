"""An executor that does what a script says, for tests: a thread for each schedule that a device times at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, cast

from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import Measure, OpenDevice, PrepareReference
from halide_autotune.autotune_loop.execute.tasks.task import MeasureTask, Task
from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.measure import device_failure
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.targets.errors import DeviceError, FarmError

R = TypeVar("R")

# Given the device, the symbol and how often that device was asked before.
MeasureScript = Callable[[str, str, int], Timing]
OpenScript = Callable[[str, int], str | DeviceError]


def carry_out(task: Task[Any]) -> object:
    """The script for tasks that need nothing of a run."""
    return task.run(cast(Any, None))


class ScriptedExecutor:
    """See `Executor`.

    Args:
        script: gives a task's result.
        at_once: schedules that each device times at once.

    Attributes:
        arriving: the devices that `arrivals` gives next.
        script: as given; may be replaced.
        most_at_once: tasks that a device has had under way at once.
    """

    def __init__(self, script: Callable[[Task[Any]], object] = carry_out, at_once: int = 1) -> None:
        self.arriving: list[str] = []
        self.most_at_once: dict[str, int] = {}
        self.build_slots = 1
        self.script = script
        self._at_once = at_once
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._running: dict[str, int] = {}
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, task: Task[R]) -> Future[R]:
        device = task.device_name if isinstance(task, MeasureTask) else ""
        with self._lock:
            pool = self._pools.setdefault(device, ThreadPoolExecutor(self._at_once if device else self.build_slots))
        return pool.submit(self._run, device, task)

    def _run(self, device: str, task: Task[R]) -> R:
        if self._closed:
            raise FarmError("The run has ended.")
        with self._lock:
            self._running[device] = self._running.get(device, 0) + 1
            self.most_at_once[device] = max(self.most_at_once.get(device, 0), self._running[device])
        try:
            return cast(R, self.script(task))
        finally:
            with self._lock:
                self._running[device] -= 1

    def arrivals(self) -> list[str]:
        arrived, self.arriving = self.arriving, []
        return arrived

    def interrupt(self) -> None:
        """Nothing: a script has no child processes."""

    def close(self) -> None:
        self._closed = True
        for pool in self._pools.values():
            pool.shutdown()


_CHECKED_BY_MYPY: type[Executor] = ScriptedExecutor


class ScriptedDevices:
    """The script of devices: how they answer when they are opened and asked to measure.

    Args:
        measure: answers a measurement, and a run of the reference.
        open_device: answers an attempt to connect, with the ID of the boot.

    Attributes:
        measured: devices and symbols, in the order in which they were asked for.
        opened: devices.
    """

    def __init__(self, measure: MeasureScript, open_device: OpenScript = lambda device, times: "boot") -> None:
        self.measure = measure
        self.measured: list[tuple[str, str]] = []
        self.opened: list[str] = []
        self._open = open_device

    def answer(self, task: Task[Any]) -> object:
        if isinstance(task, OpenDevice):
            times = self.opened.count(task.device_name)
            self.opened.append(task.device_name)
            return self._open(task.device_name, times)
        assert isinstance(task, Measure | PrepareReference), f"the dispatcher asked for {task}"
        device = task.device_name
        symbol = task.symbol if isinstance(task, Measure) else task.reference.symbol
        times = sum(1 for name, _ in self.measured if name == device)
        self.measured.append((device, symbol))
        return self.measure(device, symbol, times)


def timed(
    device: str, symbol: str, median_s: float = 0.001, epoch: str = "", reference_s: float | None = None
) -> Timing:
    """A schedule that was timed."""
    measurement = Measurement(symbol, device, Clock.WALL, (median_s,), "precision", True)
    if reference_s is None:
        return Timing(measurement, median_s, epoch)
    reference = Measurement("reference", device, Clock.WALL, (reference_s,), "precision", False)
    return Timing(measurement, median_s, epoch, (reference,))


def lost(device: str, symbol: str, *, under_way: bool = True, kind: TroubleKind = TroubleKind.LOST) -> Timing:
    """A device that went away under a schedule."""
    trouble = DeviceTrouble(kind, f"{device} is gone.")
    return Timing(device_failure(symbol, device, trouble, under_way=under_way), 0.0)
