"""A device that several threads use at once."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from halide_autotune.autotune_loop.execute.device_session import DeviceSession, ReferenceRun, Timing
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import PrepareReference
from halide_autotune.autotune_loop.execute.worker_state import WorkerState
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.devices.transport import RunOutcome, Transport
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.stop_signal import StopSignal

AT_ONCE = 4
EXECUTABLE = Executable(Path("batch"), (), "sha256")
REFERENCE = ReferenceRun(Executable(Path("reference"), (), "other"), "best", "reference.raw", 60.0)


class MeetingTransport:
    """Schedules end when as many of them run as may at once."""

    def __init__(self) -> None:
        self.pushed: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self.together = threading.Barrier(AT_ONCE)

    def push(self, source: Path, name: str) -> None:
        self.pushed[name] += 1

    def pull(self, name: str, destination: Path) -> None:
        raise AssertionError("nothing is fetched")

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        self.runs[name] += 1
        if name != "reference":
            self.together.wait(timeout=60)
        report = {"event": "timed", "kernel": "any", "repetitions_s": [1e-3], "stopped_by": "repetitions"}
        return RunOutcome(0, False, False, json.dumps(report), 0.1)

    def remove(self, name: str) -> None:
        raise AssertionError("nothing is deleted")

    def close(self) -> None:
        pass


def test_schedules_run_at_once_and_share_what_they_need() -> None:
    transport, opened = MeetingTransport(), []

    def open_transport() -> MeetingTransport:
        opened.append(transport)
        return transport

    device = Device("qemu", "qemu", "arm64", Clock.SIMULATED, 1, uses_host_cores=True, at_once=AT_ONCE)
    device_session = DeviceSession(device, open_transport, KernelInputs())

    def measure(symbol: str) -> Timing:
        return device_session.measure(EXECUTABLE, symbol, MeasureSettings(), REFERENCE, Tolerance(), StopSignal())

    with ThreadPoolExecutor(AT_ONCE) as pool:
        timings = list(pool.map(measure, [f"s{n}" for n in range(2 * AT_ONCE)]))
    assert all(isinstance(timing.result, Measurement) for timing in timings)
    assert len(opened) == 1 and transport.pushed == {"reference": 1, "batch": 1}
    assert transport.runs == {"reference": 2, "batch": 2 * AT_ONCE}, "outputs and a time of the reference"
    assert measure("s0") == replace(timings[0], held_s=0.0), "and nothing runs again"


def test_a_session_that_was_given_back_is_not_opened_again() -> None:
    """A task that has begun while its run ended would keep the device for as long as the worker lives."""
    transport, opened, closed = MeetingTransport(), list[Transport](), list[Transport]()
    transport.close = lambda: closed.append(transport)  # type: ignore[method-assign]  # that it is called is the test

    def open_transport() -> Transport:
        opened.append(transport)
        return transport

    device = Device("pi", "ssh", "arm64", Clock.WALL, 1, uses_host_cores=False)
    used, unused = (DeviceSession(device, open_transport, KernelInputs()) for _ in range(2))
    used.open()
    for session in (used, unused):
        session.close()
        with pytest.raises(DeviceError, match="pi was given back: the run has ended"):
            session.open()
        session.close()
    assert opened == closed == [transport]


class LosingTransport(MeetingTransport):
    """Is lost while it runs something for the first time."""

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        if not self.runs:
            self.runs[name] += 1
            raise DeviceTrouble(TroubleKind.LOST, "the connection was lost")
        return super().run(name, arguments, time_s, stop)


def test_a_device_that_is_lost_under_the_reference_is_opened_anew() -> None:
    transport = LosingTransport()
    device = Device("board", "ssh", "arm64", Clock.WALL, 1, uses_host_cores=False)
    session = DeviceSession(device, lambda: transport, KernelInputs(files={"image": Path("image")}))
    state = SimpleNamespace(device_session=lambda name: session, measuring=lambda: contextlib.nullcontext(StopSignal()))
    task = PrepareReference("board", REFERENCE, MeasureSettings())
    lost = task.run(cast(WorkerState, state))
    assert lost is not None and isinstance(lost.result, MeasureFailure)
    assert (lost.result.trouble, lost.result.under_way) == (TroubleKind.LOST, True)
    assert transport.pushed["input.image.raw"] == 1
    found = task.run(cast(WorkerState, state))
    assert found is not None and isinstance(found.result, Measurement)
    assert transport.pushed["input.image.raw"] == 2, "whether it is still there is looked at"
