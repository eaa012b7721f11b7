"""Stands in for the Dask engine: devices that do what a script says, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from autotune_loop.execute import tasks
from autotune_loop.execute.timing import Timing
from devices.device import Clock
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.timing.measure import device_failure
from devices.timing.measurement import Measurement
from targets.errors import DeviceError

# Given the device, the symbol and how often that device was asked before.
Measure = Callable[[str, str, int], Timing]
Open = Callable[[str, int], str | DeviceError]


class ScriptedEngine:
    """One worker for each device, as the engine has, with a thread for each schedule that it times at once.

    Args:
        measure: answers a measurement, and a run of the reference.
        open_device: answers an attempt to connect, with what identifies the boot.
    """

    def __init__(self, measure: Measure, open_device: Open = lambda device, times: "boot", at_once: int = 1) -> None:
        self._measure = measure
        self._at_once = at_once
        self._open = open_device
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()
        self.measured: list[tuple[str, str]] = []
        self.opened: list[str] = []
        self.arriving: list[str] = []
        self.most_at_once: dict[str, int] = {}
        self._running: dict[str, int] = {}

    def arrivals(self) -> list[str]:
        """As `Engine.arrivals`."""
        arrived, self.arriving = self.arriving, []
        return arrived

    def submit_measure(self, device: str, task: object, *arguments: Any) -> Future[Any]:
        """As `Engine.submit_measure`."""
        pool = self._threads.setdefault(device, ThreadPoolExecutor(self._at_once))
        return pool.submit(self._run, device, task, *arguments)

    def _run(self, device: str, task: object, *arguments: Any) -> object:
        with self._lock:
            self._running[device] = self._running.get(device, 0) + 1
            self.most_at_once[device] = max(self.most_at_once.get(device, 0), self._running[device])
        try:
            return self._answer(device, task, *arguments)
        finally:
            with self._lock:
                self._running[device] -= 1

    def _answer(self, device: str, task: object, *arguments: Any) -> object:
        if task is tasks.open_device:
            times = self.opened.count(device)
            self.opened.append(device)
            return self._open(device, times)
        if task in (tasks.measure, tasks.prepare_reference):
            symbol = arguments[2] if task is tasks.measure else arguments[1].symbol
            times = sum(1 for name, _ in self.measured if name == device)
            self.measured.append((device, symbol))
            return self._measure(device, symbol, times)
        raise AssertionError(f"the dispatcher asked for {task}")

    def answer_with(self, measure: Measure) -> None:
        """Measurements are answered by another script from now on."""
        self._measure = measure

    def close(self) -> None:
        """End the threads."""
        for pool in self._threads.values():
            pool.shutdown()


def timed(device: str, symbol: str, median_s: float = 0.001, era: str = "", reference_s: float | None = None) -> Timing:
    """A schedule that was timed."""
    measurement = Measurement(symbol, device, Clock.WALL, (median_s,), "precision", True)
    reference = None
    if reference_s is not None:
        reference = Measurement("reference", device, Clock.WALL, (reference_s,), "precision", False)
    return Timing(measurement, median_s, era, reference)


def lost(device: str, symbol: str, *, under_way: bool = True, kind: TroubleKind = TroubleKind.LOST) -> Timing:
    """A device that went away under a schedule."""
    trouble = DeviceTrouble(kind, f"{device} is gone.")
    return Timing(device_failure(symbol, device, trouble, under_way=under_way), 0.0)
