"""What is done on a device: open it, time the reference, a schedule or its Funcs, read sensors, delete a batch."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.execute.device_session import ReferenceRun, Timing
from halide_autotune.autotune_loop.execute.tasks.task import FileKey, MeasureTask
from halide_autotune.autotune_loop.execute.worker_state import WorkerState
from halide_autotune.devices.health.probe import DeviceSense
from halide_autotune.devices.timing.func_times import FuncTimes, time_funcs
from halide_autotune.devices.timing.machine_signs import Surroundings
from halide_autotune.devices.timing.measure import device_failure
from halide_autotune.devices.timing.measure_settings import MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import DeviceError


def _file_of(executable: Executable) -> dict[Path, FileKey]:
    return {executable.path: FileKey(executable.path.name, executable.sha256)}


@dataclass(frozen=True)
class OpenDevice(MeasureTask[str | DeviceError], kind="open_device"):
    """Connect to a device, again after trouble; returns the ID of its boot."""

    is_brief = True

    def run(self, state: WorkerState) -> str | DeviceError:
        """See `Task.run`."""
        try:
            session = state.device_session(self.device_name)
            session.open()
        except DeviceError as error:
            return error
        return session.boot


@dataclass(frozen=True)
class PrepareReference(MeasureTask[Timing | None], kind="prepare_reference"):
    """Run the reference once; its outputs stay on the device for every candidate of the run.

    Returns its time, or why there are no outputs; None when there are outputs and timing it failed.
    """

    reference: ReferenceRun
    settings: MeasureSettings

    def inputs(self) -> dict[Path, FileKey]:
        """See `Task.inputs`."""
        return _file_of(self.reference.executable)

    def run(self, state: WorkerState) -> Timing | None:
        """See `Task.run`."""
        session = state.device_session(self.device_name)
        try:
            session.open()
            with state.measuring() as stop:
                started_s = time.monotonic()
                result = session.reference(self.reference, self.settings, stop)
                held_s = time.monotonic() - started_s
        except DeviceError as error:
            return Timing(device_failure(self.reference.symbol, self.device_name, error, under_way=False), 0.0)
        if isinstance(result, MeasureFailure):
            return Timing(result, held_s)
        return Timing(result[0], held_s, session.epoch, result) if result else None


@dataclass(frozen=True)
class Measure(MeasureTask[Timing], kind="measure"):
    """Check and time one kernel."""

    executable: Executable
    symbol: str
    settings: MeasureSettings
    reference: ReferenceRun | None
    tolerance: Tolerance

    def inputs(self) -> dict[Path, FileKey]:
        """See `Task.inputs`."""
        reference = {} if self.reference is None else _file_of(self.reference.executable)
        return _file_of(self.executable) | reference

    def run(self, state: WorkerState) -> Timing:
        """See `Task.run`."""
        with state.measuring() as stop:
            return state.device_session(self.device_name).measure(
                self.executable, self.symbol, self.settings, self.reference, self.tolerance, stop
            )


@dataclass(frozen=True)
class TimeFuncs(MeasureTask[FuncTimes | None], kind="time_funcs"):
    """Tell what each Func of a kernel takes; returns None where its device or its profiler does not tell.

    Attributes:
        executable: of kernels that are built with `PROFILE_FEATURE`; it is deleted from the device afterwards.
    """

    executable: Executable
    symbol: str
    settings: MeasureSettings
    tolerance: Tolerance

    def inputs(self) -> dict[Path, FileKey]:
        """See `Task.inputs`."""
        return _file_of(self.executable)

    def run(self, state: WorkerState) -> FuncTimes | None:
        """See `Task.run`."""
        session = state.device_session(self.device_name)
        with state.measuring() as stop:
            times = session.ask(self.executable, self.symbol, time_funcs, self.settings, None, self.tolerance, stop)
        session.forget(self.executable.path.name, self.executable.sha256)
        return None if isinstance(times, MeasureFailure) else times


@dataclass(frozen=True)
class Sense(MeasureTask[DeviceSense | None], kind="sense"):
    """Read the device's sensors; returns None where there are none, or where it does not answer."""

    is_brief = True

    def run(self, state: WorkerState) -> DeviceSense | None:
        """See `Task.run`."""
        return state.device_session(self.device_name).sense()


@dataclass(frozen=True)
class LookAround(MeasureTask[Surroundings | None], kind="look_around"):
    """See who else computes on the device; returns None where it does not tell."""

    is_brief = True

    executable: Executable

    def inputs(self) -> dict[Path, FileKey]:
        """See `Task.inputs`."""
        return _file_of(self.executable)

    def run(self, state: WorkerState) -> Surroundings | None:
        """See `Task.run`."""
        with state.measuring() as stop:
            return state.device_session(self.device_name).look_around(self.executable, stop)


@dataclass(frozen=True)
class Forget(MeasureTask[None], kind="forget"):
    """Delete a measured batch's executable from the device, and from its worker.

    Attributes:
        file_name: as it was pushed.
        sha256: of its content.
    """

    is_brief = True

    file_name: str
    sha256: str

    def run(self, state: WorkerState) -> None:
        """See `Task.run`."""
        state.drop_file(self.sha256)
        state.device_session(self.device_name).forget(self.file_name, self.sha256)
