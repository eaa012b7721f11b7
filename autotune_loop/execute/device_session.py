"""One device in the service of a run."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.device_speed import DeviceSpeed
from halide_autotune.devices.health.probe import DeviceSense
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.timing.input_size import InputSize, sizes_of
from halide_autotune.devices.timing.machine_signs import Surroundings
from halide_autotune.devices.timing.measure import Session, device_failure, look_around, write_reference
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.devices.timing.measurement_at_sizes import over_sizes
from halide_autotune.devices.timing.paired_timing import NOT_THE_KERNELS_FAULT, PairedTiming
from halide_autotune.devices.timing.reference_times import kernels_over_sizes, time_well
from halide_autotune.devices.transport import Transport
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.stop_signal import StopSignal

T = TypeVar("T")
# Asked of a kernel of an executable, and the outputs to compare with; with a limit of time, and what ends it.
Question = Callable[[Session, str, str, str | None, float, StopSignal | None], T | MeasureFailure]

# The largest that the runner takes.
_LARGEST_LOST_OVER = 1e6


@dataclass(frozen=True)
class ReferenceRun:
    """How the outputs that all others are compared with get onto a device.

    Attributes:
        executable: has the reference's kernel; kept for the whole run, since a device may need it again.
        symbol: that kernel.
        file: the name that the outputs have on the device, of several sizes those of the first.
        limit_s: how long one run of it may take.
        others: further kernels of the executable, which several boards are compared by.
    """

    executable: Executable
    symbol: str
    file: str
    limit_s: float
    others: tuple[str, ...] = ()

    def file_at(self, place: int) -> str:
        """The name of the outputs at the size in that place."""
        return f"{place}_{self.file}" if place else self.file


@dataclass(frozen=True)
class Timing:
    """A schedule's result on one device.

    Attributes:
        held_s: seconds that it held the device.
        epoch: names a stretch of the device's life in which its times can be compared with each other.
        references: the reference's own time in that epoch, and those of the kernels that boards are compared by beside
            it; empty where there are none.
        alone: why the schedule was timed alone though it should have been beside another one, for people; else empty.
    """

    result: Measurement | MeasureFailure
    held_s: float
    epoch: str = ""
    references: tuple[Measurement, ...] = ()
    alone: str = ""


class _Connection:
    """The one transport of a session, given back for good: a run that ends does not wait for a turn of minutes."""

    def __init__(self, open_transport: Callable[[], Transport]) -> None:
        self._open_transport: Callable[[], Transport] | None = open_transport
        self._lock = threading.Lock()
        self.transport: Transport | None = None

    def open(self) -> Transport | None:
        """The transport; None after `close`."""
        with self._lock:
            if self.transport is None and self._open_transport is not None:
                self.transport = self._open_transport()
            return self.transport

    def close(self) -> None:
        with self._lock:
            self._open_transport = None
            transport, self.transport = self.transport, None
        if transport is not None:
            transport.close()


@dataclass
class DeviceSession:
    """Opens the device when it is first needed, and again after trouble.

    A device that times several schedules at once is used by as many threads: they differ in what they run, and take
    turns at everything else.

    Attributes:
        open_transport: makes the transport, not yet connected where it is a remote one.
        inputs: what every kernel is called with.
        epoch: names a stretch of the device's life in which it keeps its speed, as far as this run has seen.
    """

    device: Device
    open_transport: Callable[[], Transport]
    inputs: KernelInputs
    epoch: str = ""
    _ready: bool = False
    _is_full: bool = False
    _speed: DeviceSpeed = field(init=False)
    # Of every reference its time and those of the others; nothing where timing it failed.
    _references: dict[str, tuple[Measurement, ...]] = field(default_factory=dict)
    _pushed: set[str] = field(default_factory=set)
    _simulated: dict[tuple[str, str, bool], Timing] = field(default_factory=dict)
    _turn: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._connection = _Connection(self.open_transport)
        self._speed = DeviceSpeed(self.device.name)
        self._sizes = sizes_of(self.inputs)
        self._paired = tuple(PairedTiming() for _ in self._sizes)

    @property
    def boot(self) -> str:
        """Identifies the time since the device was switched on; empty where nothing tells."""
        return self.epoch.partition("/")[0]

    def open(self) -> Transport:
        """Connect, take the lease, push the input files; at once when that is done already.

        Raises:
            DeviceError: the device cannot be used.
        """
        with self._turn:
            transport = self._connected(self._connection.open())
            if not self._ready:
                if isinstance(transport, AgentTransport):
                    self._begin_epoch(transport)
                    if self._is_full:
                        transport.reclaim()
                        self._is_full = False
                self._session(Tolerance()).push_inputs()
                self._ready = True
            return transport

    def _connected(self, transport: Transport | None) -> Transport:
        if transport is None:
            raise DeviceError(f"{self.device.name} was given back: the run has ended.")
        return transport

    def _begin_epoch(self, transport: AgentTransport) -> None:
        boot = transport.open().boot
        if boot != self.boot:
            self._speed.forget()
            self._start_epoch(boot)
        if self.device.has_canary:
            self._speed.begin(transport.canary)

    def _start_epoch(self, boot: str) -> None:
        """Times before and after are compared by what the reference takes, which is therefore timed again."""
        self.epoch = f"{boot}/{secrets.token_hex(4)}"
        self._references.clear()

    def _cool_down(self, transport: Transport, stop: StopSignal, *, is_paired: bool) -> None:
        """Wait for the device's usual speed.

        Raises:
            DeviceTrouble: it does not come back. What it then has is its usual one.
        """
        if isinstance(transport, AgentTransport):
            trouble = self._speed.cool_down(transport.canary, stop, is_paired=is_paired)
            if trouble is not None:
                self._start_epoch(self.boot)
                raise trouble

    def _forget_connection(self, error: DeviceError) -> None:
        """After trouble the device is opened anew; what was put there is looked for again."""
        self._ready = False
        self._is_full |= isinstance(error, DeviceTrouble) and error.kind is TroubleKind.FULL
        self._pushed.clear()
        # Only after a loss of the connection are the reference's outputs sure to be there still.
        if not (isinstance(error, DeviceTrouble) and error.kind in (TroubleKind.LOST, TroubleKind.TIMEOUT)):
            self._references.clear()

    def _session(self, tolerance: Tolerance, inputs: KernelInputs | None = None) -> Session:
        transport = self._connected(self._connection.transport)
        return Session(self.device, transport, inputs or self._sizes[0].inputs, tolerance)

    def sense(self) -> DeviceSense | None:
        """What its sensors say; None where there are none, or it does not answer."""
        transport = self._connection.transport
        if not self._ready or not isinstance(transport, AgentTransport):
            return None
        try:
            return transport.sense()
        except DeviceError as error:
            self._forget_connection(error)
            return None

    def look_around(self, executable: Executable, stop: StopSignal) -> Surroundings | None:
        """Who else computes on it now; None if it does not tell."""
        with self._turn:
            try:
                self._push(self.open(), executable)
                return look_around(self._session(Tolerance()), executable.path.name, stop)
            except DeviceError as error:
                self._forget_connection(error)
                return None

    def _push(self, transport: Transport, executable: Executable) -> None:
        if executable.sha256 not in self._pushed:
            transport.push(executable.path, executable.path.name)
            self._pushed.add(executable.sha256)

    def forget(self, file_name: str, sha256: str) -> None:
        """Delete an executable from the device; one that does not answer deletes it later with all the rest."""
        self._pushed.discard(sha256)
        transport = self._connection.transport
        if self._ready and transport is not None:
            with contextlib.suppress(DeviceError):
                transport.remove(file_name)

    def close(self) -> None:
        """Give the device back, for good: what is under way does not open it again."""
        self._connection.close()
        self._ready = False

    def reference(
        self, run: ReferenceRun, settings: MeasureSettings, stop: StopSignal
    ) -> tuple[Measurement, ...] | MeasureFailure:
        """Put the reference's outputs on the device, unless they are there.

        Trouble with the device is a result, too, as in `measure`.

        Returns:
            Why there are no outputs; or `Timing.references`, empty when timing the reference failed.
        """
        if run.file in self._references:
            return self._references[run.file]
        name, is_running = run.executable.path.name, False
        try:
            self._session(Tolerance()).transport.push(run.executable.path, name)
            is_running = True
            return self._reference_at_sizes(run, name, settings, stop)
        except DeviceError as error:
            return self._heeded(device_failure(run.symbol, self.device.name, error, under_way=is_running))

    def _reference_at_sizes(
        self, run: ReferenceRun, name: str, settings: MeasureSettings, stop: StopSignal
    ) -> tuple[Measurement, ...] | MeasureFailure:
        at_sizes: dict[str, dict[str, Measurement]] = {}
        has_times = True
        alone = replace(settings, beside=None)  # what a schedule is timed beside need not be in this executable
        for place, size in enumerate(self._sizes):
            session = self._session(Tolerance(), size.inputs)
            failure = write_reference(session, name, run.symbol, run.file_at(place), run.limit_s, stop)
            if failure is not None:
                return self._heeded(_told_at(size, failure))
            timed = time_well(session, name, (run.symbol, *run.others), alone, stop)
            if isinstance(timed, MeasureFailure) and timed.reason in NOT_THE_KERNELS_FAULT:
                return self._heeded(timed)
            has_times &= not isinstance(timed, MeasureFailure)
            at_sizes[size.label] = {} if isinstance(timed, MeasureFailure) else {one.kernel: one for one in timed}
        self._references[run.file] = kernels_over_sizes(at_sizes) if has_times else ()
        return self._references[run.file]

    def measure(
        self,
        executable: Executable,
        symbol: str,
        settings: MeasureSettings,
        reference: ReferenceRun | None,
        tolerance: Tolerance,
        stop: StopSignal,
    ) -> Timing:
        """Check and time one kernel. Trouble with the device is a result, too; what follows opens it anew."""
        asked = (executable.sha256, symbol, reference is not None)
        if asked in self._simulated:  # another turn would give the same time
            return self._simulated[asked]
        with self._turn:
            try:
                transport = self.open()
                self._cool_down(transport, stop, is_paired=settings.beside is not None and not self._alone(settings))
                compared = () if reference is None else self.reference(reference, settings, stop)
                if isinstance(compared, MeasureFailure):
                    return Timing(_no_reference(symbol, compared), 0.0)
                self._push(transport, executable)
            except DeviceError as error:
                self._forget_connection(error)
                return Timing(device_failure(symbol, self.device.name, error, under_way=False), 0.0)
        started = time.monotonic()
        result = self._measure_at_sizes(executable, symbol, settings, reference, tolerance, stop)
        held_s = time.monotonic() - started
        if isinstance(result, MeasureFailure):
            self._heeded(result)
        timing = Timing(self._speed.judged(result), held_s, self.epoch, compared, self._alone(settings))
        if self.device.clock is Clock.SIMULATED and isinstance(result, Measurement):
            self._simulated[asked] = replace(timing, held_s=0.0)
        return timing

    def ask(
        self,
        executable: Executable,
        symbol: str,
        question: Question[T],
        settings: MeasureSettings,
        reference: ReferenceRun | None,
        tolerance: Tolerance,
        stop: StopSignal,
    ) -> T | MeasureFailure:
        """Check one kernel at the main size, and tell what is asked of its Funcs: `time_funcs` or `count_accesses`."""
        with self._turn:
            try:
                self._push(self.open(), executable)
            except DeviceError as error:
                self._forget_connection(error)
                return device_failure(symbol, self.device.name, error, under_way=False)
        session = self._session(tolerance, self._sizes[0].exact)
        file = None if reference is None else reference.file
        answer = question(session, executable.path.name, symbol, file, settings.run_limit_s, stop)
        return self._heeded(answer) if isinstance(answer, MeasureFailure) else answer

    def _measure_at_sizes(
        self,
        executable: Executable,
        symbol: str,
        settings: MeasureSettings,
        reference: ReferenceRun | None,
        tolerance: Tolerance,
        stop: StopSignal,
    ) -> Measurement | MeasureFailure:
        """Check and time one kernel at every size; a failure at one of them is the kernel's."""
        at_sizes = {}
        settings = _of_one_size(settings, len(self._sizes))
        for place, (size, paired) in enumerate(zip(self._sizes, self._paired, strict=True)):
            file = None if reference is None else reference.file_at(place)
            session = self._session(tolerance, size.exact)
            result = paired.measure(session, executable.path.name, symbol, settings, file, stop)
            if isinstance(result, MeasureFailure):
                return _told_at(size, result)
            at_sizes[size.label] = result
        return over_sizes(at_sizes)

    def _heeded(self, failure: MeasureFailure) -> MeasureFailure:
        """The failure; after one of the device, what follows opens it anew."""
        if failure.reason is MeasureFailureReason.DEVICE:
            self._forget_connection(DeviceTrouble(failure.trouble or TroubleKind.BROKEN, failure.message))
        return failure

    def _alone(self, settings: MeasureSettings) -> str:
        """Why a schedule is timed alone though these settings want a pair; empty if it is not."""
        other, name = settings.beside, self.device.name
        if other is None or not settings.alone_without_it:
            return ""
        why = next((paired.failures[other] for paired in self._paired if other in paired.failures), None)
        if why is None:
            return ""
        return f"{name} times each schedule alone, because the one to time them beside, {other}, fails there: {why}"


def _of_one_size(settings: MeasureSettings, count: int) -> MeasureSettings:
    """How a schedule is timed at one of several sizes: it may be slow there if it is fast at the others."""
    if count == 1:
        return settings
    return replace(settings, give_up_over_s=None, lost_over=min(settings.lost_over**count, _LARGEST_LOST_OVER))


def _told_at(size: InputSize, failure: MeasureFailure) -> MeasureFailure:
    """The failure, with the size at which the kernel failed where there are several."""
    if not size.label or failure.reason in NOT_THE_KERNELS_FAULT:
        return failure
    return replace(failure, message=f"At {size.label}: {failure.message}")


def _no_reference(symbol: str, failure: MeasureFailure) -> MeasureFailure:
    """A schedule that could not be compared because the reference did not run on this device."""
    if failure.reason in NOT_THE_KERNELS_FAULT:
        return replace(failure, kernel=symbol, under_way=False)
    trouble = DeviceTrouble(TroubleKind.BROKEN, f"The reference does not run on {failure.device}: {failure.message}")
    return device_failure(symbol, failure.device, trouble, under_way=False)
