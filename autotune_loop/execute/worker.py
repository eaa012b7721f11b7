"""What a machine puts into a farm: its devices and its cores."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.execute.lease_pool import LeasePool, OpenRemote
from halide_autotune.autotune_loop.execute.messages import (
    FilePart,
    MissingInput,
    RemoteRun,
    Reply,
    TaskMessage,
    TaskResult,
    decode,
    output_folder,
    task_error,
    task_result,
)
from halide_autotune.autotune_loop.execute.run_files import NotYetHereError, RunFiles

# These define the kinds of tasks that can be asked for.
from halide_autotune.autotune_loop.execute.tasks import build_tasks, measure_tasks, own_schedule, schedule_tasks  # noqa: F401
from halide_autotune.autotune_loop.execute.tasks.task import FileKey, MeasureTask, Task
from halide_autotune.autotune_loop.execute.travelling_generators import unpack_generator
from halide_autotune.autotune_loop.execute.worker_state import WorkerState
from halide_autotune.autotune_loop.farm.device import DeviceFailure, DeviceReport, ServedDevice
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.devices.device import Device
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason
from halide_autotune.devices.transport import Transport, check_name
from halide_autotune.targets.errors import DeviceError, FarmError, GeneratorError, SdkError, ToolchainError

_FAILURES_KEPT = 10
# So long a device's lease is kept when no run uses the device any more.
_IDLE_LEASE_S = 10.0
_LONGEST_MESSAGE = 500
# Kernels and headers; far more than a batch's largest.
_MOST_OUTPUT_BYTES = 2**30


@dataclass
class _Run:
    """A run that this worker has been told of.

    Attributes:
        folder: everything of it here; deleted with its end.
        state: what is open for it; None before its first task.
    """

    remote: RemoteRun
    folder: Path
    files: RunFiles
    state: WorkerState | None = None


class FarmWorker:
    """One process of a farm: it holds each device's lease, and what is open for each run.

    Args:
        name: as people call it, unique in the farm; usually the host's name.
        devices: what it measures on; their names are unique in the farm.
        build_slots: candidates that it builds at once; 0 for none.
        open_remote: makes a device's connection.
    """

    def __init__(
        self,
        name: str,
        workspace: Workspace,
        devices: Sequence[ServedDevice],
        build_slots: int,
        open_remote: OpenRemote,
    ) -> None:
        self.name = name
        self.id = secrets.token_hex(8)
        self.workspace = workspace
        self.build_slots = build_slots
        self.devices = {served.announced.name: served for served in devices}
        self._leases = LeasePool(open_remote)
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        # The run, the kind of the task that holds a device, and since when; monotonic.
        self._doing: dict[str, tuple[str, str, float]] = {}
        self._failures: dict[str, deque[DeviceFailure]] = {name: deque(maxlen=_FAILURES_KEPT) for name in self.devices}
        self._closed = False

    def report(self, device_name: str) -> DeviceReport:
        """Return how a device is just now; nothing of a device of others."""
        now_s = time.monotonic()
        run_id, task, since_s = self._doing.get(device_name, ("", "", now_s))
        users = self._leases.users(device_name)
        failures = tuple(self._failures.get(device_name, ()))
        return DeviceReport(run_id, task, now_s - since_s, users is not None, tuple(users or ()), failures)

    def receive_run(self, remote: RemoteRun) -> None:
        """Make ready for a run; nothing when it is known already.

        Raises:
            FarmError: this worker ends.
        """
        with self._lock:
            if self._closed:
                raise FarmError(f"{self.name} is leaving the farm.")
            if remote.run_id not in self._runs:
                folder = self.workspace.work_folder / "runs" / remote.run_id
                self._runs[remote.run_id] = _Run(remote, folder, RunFiles(folder / "files"))

    def receive_file(self, part: FilePart) -> None:
        """Take a piece of a file that a run's tasks need.

        Raises:
            NotYetHereError: the run has ended here.
            FarmError: the file was damaged on the way.
        """
        self._run(part.run_id).files.receive(part)

    def perform(self, message: TaskMessage, address: str) -> Reply:
        """Carry a task out.

        Args:
            address: of the Dask worker that was given the task; what the task lacks is sent there.
        """
        inputs: dict[Path, FileKey] = {}
        with contextlib.ExitStack() as exits:
            try:
                run = self._run(message.run_id)
                state = self._state(run)

                def file_at(key: FileKey) -> Path:
                    path = run.files.path(key)
                    inputs[path] = key
                    return path

                folder = exits.enter_context(_scratch_folder(run.folder)) / "output" if message.builds else None
                task = message.read_task(file_at, folder)
            except NotYetHereError as missing:
                return MissingInput(address, self.id, missing.key)
            return self._performed(task, state, message.run_id, inputs)

    def _performed(
        self, task: Task[Any], state: WorkerState, run_id: str, inputs: Mapping[Path, FileKey]
    ) -> TaskResult:
        started_s = time.monotonic()
        with self._busy(task, run_id):
            try:
                result = task.run(state)
                files = _files_made(output_folder(task))
            except GeneratorError as error:
                return task_error(_does_not_travel(error, state, self.name), time.monotonic() - started_s)
            except ToolchainError as error:
                error = ToolchainError(f"On the farm's worker {self.name}: {error.message}", next_step=error.next_step)
                return task_error(error, time.monotonic() - started_s)
            except SdkError as error:
                return task_error(error, time.monotonic() - started_s)
        if isinstance(task, MeasureTask):
            self._note_failure(task.device_name, run_id, result)
        return task_result(result, time.monotonic() - started_s, files, inputs, output_folder(task))

    def _run(self, run_id: str) -> _Run:
        try:
            return self._runs[run_id]
        except KeyError:
            raise NotYetHereError(None) from None

    def _state(self, run: _Run) -> WorkerState:
        """Return what is open for a run.

        Raises:
            NotYetHereError: a file that every task needs has not come yet.
        """
        with self._lock:
            if run.state is None:
                run.state = WorkerState(self._context(run), partial(self._find_device, run.remote), run.files.drop)
            return run.state

    def _context(self, run: _Run) -> RunContext:
        remote, file_at = run.remote, run.files.path
        limits, memory_bytes = remote.limits, self.workspace.memory_bytes
        if memory_bytes is not None:
            limits = replace(limits, memory_bytes=min(limits.memory_bytes, memory_bytes))
        tasks = self._tuning_tasks(run) if self.build_slots else ()
        inputs = decode(remote.inputs, KernelInputs, file_at) if self.devices else KernelInputs()
        spec = RunSpec(tasks, remote.profile, remote.parallelism, RunOptions(inputs=inputs))
        return RunContext(spec, (), inputs, limits, replace(self.workspace, work_folder=run.folder))

    def _tuning_tasks(self, run: _Run) -> tuple[TuningTask, ...]:
        folder = run.folder / "generators"
        for name, key in run.remote.archives.items():
            unpack_generator(run.files.path(key), folder / check_name(name))
        return decode(run.remote.tuning_tasks, tuple[TuningTask, ...], run.files.path, folder)

    def _find_device(self, remote: RemoteRun, name: str) -> tuple[Device, Callable[[], Transport]]:
        """Return a device, and what makes the run's own transport to it over the connection that all runs share.

        Raises:
            DeviceError: it is not one of this worker's.
        """
        if name not in self.devices:
            raise DeviceError(f"{name} is not a device of {self.name}.")
        device = replace(self.devices[name].device, threads=remote.threads)
        return device, lambda: self._leases.share(device, remote.run_id)

    @property
    def runs(self) -> list[str]:
        """The runs that are known here."""
        return list(self._runs)

    def interrupt(self, run_id: str) -> None:
        """Kill what a run's tasks have started here; nothing when it is not known."""
        run = self._runs.get(run_id)
        if run is not None and run.state is not None:
            run.state.interrupt()

    def end_run(self, run_id: str) -> None:
        """Stop what a run still does here, and close what is open for it; nothing when it is not known."""
        with self._lock:
            run = self._runs.pop(run_id, None)
        if run is not None:
            if run.state is not None:
                run.state.close()
            shutil.rmtree(run.folder, ignore_errors=True)
        self._leases.leave(run_id)

    def close_idle(self) -> None:
        """Give back the devices that no run has used for a while."""
        self._leases.close_unused(_IDLE_LEASE_S)

    def close(self) -> None:
        """End every run and give every device back."""
        with self._lock:
            self._closed = True
        for run_id in self.runs:
            self.end_run(run_id)
        self._leases.close_unused()
        shutil.rmtree(self.workspace.work_folder / "dask", ignore_errors=True)

    @contextlib.contextmanager
    def _busy(self, task: Task[Any], run_id: str) -> Iterator[None]:
        """Note that a task holds a device."""
        if not isinstance(task, MeasureTask):
            yield
            return
        self._doing[task.device_name] = (run_id, task.kind, time.monotonic())
        try:
            yield
        finally:
            self._doing.pop(task.device_name, None)

    def _note_failure(self, device_name: str, run_id: str, result: object) -> None:
        failure = result.result if isinstance(result, Timing) else result
        if isinstance(failure, MeasureFailure) and failure.reason is MeasureFailureReason.DEVICE:
            message = failure.message
        elif isinstance(failure, DeviceError):
            message = str(failure)
        else:
            return
        # What a run that has ended still wanted is no failure of the device's.
        if device_name in self._failures and run_id in self._runs:
            self._failures[device_name].append(DeviceFailure(time.time(), run_id, message[:_LONGEST_MESSAGE]))


@contextlib.contextmanager
def _scratch_folder(run_folder: Path) -> Iterator[Path]:
    scratch = run_folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _files_made(folder: Path | None) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    size_bytes = 0
    for path in sorted(folder.rglob("*")) if folder is not None and folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            size_bytes += path.stat().st_size
            if size_bytes > _MOST_OUTPUT_BYTES:
                raise FarmError(f"A build made more than {_MOST_OUTPUT_BYTES} bytes.")
            assert folder is not None
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def _does_not_travel(error: GeneratorError, state: WorkerState, worker_name: str) -> GeneratorError:
    """Return what to say of a generator that works where the run has begun, and not on a worker."""
    lines = error.message.splitlines()
    message = " ".join(lines[:2] if lines[0].endswith(":") else lines[:1]).rstrip(".")
    for task in state.context.tasks:
        message = message.replace(str(task.reference.file), task.reference.file.name)
    return GeneratorError(
        f"On the farm's worker {worker_name}, {message}. Workers are sent the generator's sources and headers, the"
        " Python modules beside it, and what --data names.",
        next_step="Name files that it reads with --data, install libraries and packages on every worker, or tune"
        " without the farm: --scheduler none.",
    )
