"""A farm whose devices only wait: everything is real but the measuring, so that what is left is the executor's cost.

The scheduler and the workers are processes of their own, as in a lab, and talk over loopback. The benchmarks of the
farm use it; `python -m benchmarks.waiting_farm worker …` is how it starts a worker.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.farm_executor import FarmExecutor
from halide_autotune.autotune_loop.execute.local_executor import LocalExecutor
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import Measure, OpenDevice
from halide_autotune.autotune_loop.execute.worker import FarmWorker
from halide_autotune.autotune_loop.execute.worker_state import WorkerState
from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.device import FarmDevice, ServedDevice
from halide_autotune.autotune_loop.farm.fair_share import RunPriority
from halide_autotune.autotune_loop.farm.use import FARM_AHEAD_S, DeviceWish, FarmUse
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.measure.retry_state import MeasureJob
from halide_autotune.autotune_loop.specification.build_limits import BuildLimits
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.local.cores import CorePlan
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.sdk.service.service_log import log_to_stderr
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.generator.reference import GeneratorKind, GeneratorReference
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.loader import load_profile

PROFILE = "x86-64"
_START_LIMIT_S = 60.0


def _wait_to_measure(task: Measure, state: WorkerState) -> Timing:
    """Stands in for `Measure.run`: holds the device for as long as the settings say."""
    started_s = time.monotonic()
    time.sleep(task.settings.max_time_s)
    held_s = time.monotonic() - started_s
    repetitions_s = (task.settings.max_time_s,)
    return Timing(Measurement(task.symbol, task.device_name, Clock.WALL, repetitions_s, "precision", True), held_s)


def _open_waiting(task: OpenDevice, state: WorkerState) -> str:
    """Stands in for `OpenDevice.run`."""
    return "boot"


def stand_in() -> None:
    """From now on the devices of this process wait instead of measuring."""
    Measure.run = _wait_to_measure  # type: ignore[assignment, method-assign]  # a function stands in for a method
    OpenDevice.run = _open_waiting  # type: ignore[assignment, method-assign]  # a function stands in for a method


def device_names(count: int) -> list[str]:
    """Names of waiting devices."""
    return [f"d{index:03}" for index in range(count)]


def _context(folder: Path, names: Sequence[str]) -> RunContext:
    generator = folder / "none.py"
    generator.write_text("")
    spec = RunSpec(
        tasks=(TuningTask(GeneratorReference(generator, GeneratorKind.PYTHON, "none"), "none"),),
        profile=load_profile(PROFILE),
        parallelism=1,
        options=RunOptions(),
    )
    devices = tuple(_device(name) for name in names)
    return RunContext(spec, devices, KernelInputs(), BuildLimits(), _workspace(folder))


def _workspace(folder: Path) -> Workspace:
    cores = CorePlan(frozenset(os.sched_getaffinity(0)), frozenset())
    return Workspace(folder / "cache", folder / "locks", {}, folder / "work", cores)


def _device(name: str) -> Device:
    return Device(name, "ssh", PROFILE, Clock.WALL, 1, uses_host_cores=False)


@dataclass
class WaitingRun:
    """A run on a waiting farm; a context.

    Attributes:
        measured: symbol → how often its result came, which must be once.
        held_s: device seconds that its measurements took.
        ends_s: device → monotonic times at which its results came.
    """

    folder: Path
    names: Sequence[str]
    address: FarmAddress | None = None
    priority: RunPriority = RunPriority.NORMAL
    title: str = "waiting"
    measured: Counter[str] = field(default_factory=Counter)
    held_s: float = 0.0
    ends_s: dict[str, list[float]] = field(default_factory=dict)

    def __enter__(self) -> WaitingRun:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._exits = contextlib.ExitStack()
        wish = DeviceWish(PROFILE, ())
        farm = None if self.address is None else FarmUse(self.address, wish, self.priority, "bench", self.title)
        self._executable = self.folder / "batch"
        self._executable.write_bytes(b"no kernels")
        with self._exits:
            self.database = RunDatabase(self.folder / "tuning.db")
            self._exits.callback(self.database.close)
            context = _context(self.folder, self.names)
            executor: Executor = LocalExecutor(context, 1) if farm is None else FarmExecutor(context, 1, farm)
            self._exits.callback(executor.close)
            names = list(self.names)
            ahead_s = 0.0 if farm is None else FARM_AHEAD_S
            self._dispatcher = Dispatcher(
                executor, names, self.database, lambda event: None, 60.0, lambda name, trouble: None, ahead_s
            )
            self._dispatcher.open(lambda: False)
            self._exits = self._exits.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    def measure(self, symbols: Sequence[str], hold_s: float, enough: Callable[[], bool] = lambda: False) -> int:
        """Time every symbol; returns how many were left when `enough` said so."""
        executable = Executable(self._executable, (), file_sha256(self._executable))
        jobs = [MeasureJob(executable, symbol, 0, None, Tolerance()) for symbol in symbols]
        settings = MeasureSettings(max_time_s=hold_s)
        return self._dispatcher.run(jobs, lambda job: settings, self._finish, enough)

    def _finish(self, job: MeasureJob, result: Measurement | MeasureFailure, held_s: float) -> None:
        self.measured[job.symbol] += 1
        if isinstance(result, Measurement):
            self.held_s += held_s
            self.ends_s.setdefault(result.device, []).append(time.monotonic())
            self.database.add_measurement(result, "sample", held_s)


@dataclass
class WaitingFarm:
    """The processes of a farm.

    Attributes:
        workers: by name.
        devices: each worker's.
    """

    address: FarmAddress
    scheduler: subprocess.Popen[str]
    workers: dict[str, subprocess.Popen[str]]
    devices: dict[str, list[str]]


@contextlib.contextmanager
def waiting_farm(folder: Path, devices: int, workers: int) -> Iterator[WaitingFarm]:
    """A scheduler and workers on this machine; the devices are shared out among the workers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = FarmAddress(f"tcp://127.0.0.1:{free.getsockname()[1]}")
    names = device_names(devices)
    shares = {f"m{index}": names[index::workers] for index in range(workers)}
    farm = WaitingFarm(address, _start("scheduler", folder, address, "scheduler", []), {}, shares)
    try:
        _await_line(farm.scheduler, "ready")
        for name, share in shares.items():
            start_worker(farm, folder, name, share)
        yield farm
    finally:
        for process in (*farm.workers.values(), farm.scheduler):
            process.send_signal(signal.SIGTERM)
        for process in (*farm.workers.values(), farm.scheduler):
            process.communicate()


def start_worker(farm: WaitingFarm, folder: Path, name: str, devices: Sequence[str]) -> None:
    """Start a worker, also again after it was killed; returns when it is ready."""
    farm.workers[name] = _start("worker", folder, farm.address, name, devices)
    _await_line(farm.workers[name], "ready")


def _start(what: str, folder: Path, address: FarmAddress, name: str, devices: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.waiting_farm", what, address.address, str(folder / name), *devices]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _await_line(process: subprocess.Popen[str], word: str) -> None:
    """Read a process's lines up to one with the word, and the later ones in a thread so that it never waits."""
    assert process.stdout is not None
    alarm = threading.Timer(_START_LIMIT_S, process.kill)
    alarm.start()
    for line in process.stdout:
        if word in line:
            alarm.cancel()
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return
    alarm.cancel()
    raise RuntimeError(f"{process.args!r} has ended before it was ready")


def resident_bytes(process_id: int) -> int:
    """Memory that a process has now."""
    pages = int((Path("/proc") / str(process_id) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def cpu_s(process_id: int) -> float:
    """Processor time that a process has used, over all its threads."""
    fields = (Path("/proc") / str(process_id) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _serve_worker(address: FarmAddress, folder: Path, names: Sequence[str], stop: StopSignal) -> None:
    from halide_autotune.autotune_loop.execute.serve_worker import serve_worker

    served = [ServedDevice(FarmDevice(name, PROFILE, "ssh"), _device(name)) for name in names]

    def open_remote(device: Device) -> AgentTransport:
        raise AssertionError(f"{device.name} only waits")

    serve_worker(FarmWorker(folder.name, _workspace(folder), served, 0, open_remote), address, _say, stop)


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    """Be the scheduler or a worker."""
    from halide_autotune.autotune_loop.farm.scheduler import serve_scheduler

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["scheduler", "worker"])
    parser.add_argument("address")
    parser.add_argument("folder", type=Path)
    parser.add_argument("devices", nargs="*")
    arguments = parser.parse_args()
    stop = StopSignal()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    address = FarmAddress(arguments.address)
    log_to_stderr()
    if arguments.what == "scheduler":
        serve_scheduler(address, _say, stop, {})
    else:
        stand_in()
        _serve_worker(address, arguments.folder, arguments.devices, stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
