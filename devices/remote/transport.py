"""Programs on a device behind a wire, run by the agent there."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.devices.agent.protocol import Printable, core_list
from halide_autotune.devices.agent.session import AgentError, Fields, Reply
from halide_autotune.devices.device import Device
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.canary import CANARY_S, time_canary
from halide_autotune.devices.health.probe import DeviceSense, sense_device
from halide_autotune.devices.lease.lease import release_lease
from halide_autotune.devices.remote.dsp_starter import DSP_LAUNCHER, DspStarter
from halide_autotune.devices.remote.session_files import SessionFiles
from halide_autotune.devices.remote.shared_connection import SharedConnection
from halide_autotune.devices.transport import RunOutcome, check_name
from halide_autotune.targets.errors import DeviceError, SdkError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.checks import number, whole_number

_KERNEL_MEMORY_BYTES = 8 * 2**30
_LONGEST_RUN_S = 30 * 24 * 3600.0
# For the agent beside the program: an earlier run to end, two canaries, a slow line.
_RUN_SPARE_S = 120.0
_RECONNECTIONS = 3
_BACK_OFF_S = (0.5, 1.0, 2.0)
_CLOSING_S = 10.0
_KILLED = -9


@dataclass(frozen=True)
class OpenedDevice:
    """A device that was opened.

    Attributes:
        boot: identifies the time since it was last switched on.
        architecture: as `uname -m` prints.
    """

    boot: Printable
    architecture: Printable


@dataclass(frozen=True)
class _RunResult:
    exit_code: Annotated[int, whole_number(0, 255)]
    signal: Annotated[int, whole_number(0, 127)]
    timed_out: bool
    duration_s: Annotated[float, number(0, 1e9)]
    canary_before_s: Annotated[float | None, CANARY_S]
    canary_after_s: Annotated[float | None, CANARY_S]
    boot: Printable


class AgentTransport:
    """The transport of a device behind SSH or ADB; it has the lease of its slot from `open` to `close`.

    `sense` and `canary` take no lease and make no folder. Connections are made when needed, and again when they were
    lost; a run is never repeated.

    Args:
        connection: to the device.
        starter: starts the programs on its DSP; None where the processor runs them itself.
    """

    def __init__(self, connection: SharedConnection, device: Device, starter: DspStarter | None = None) -> None:
        assert device.remote is not None, "the device is behind a link"
        self._device = device
        self._starter = starter
        self._place = device.remote
        self._connection = connection
        self._session, self._lock = connection.session, connection.lock
        connection.users.join()
        self._heard_of_loss = connection.lost_lease
        self._name = secrets.token_hex(8)
        self._files = SessionFiles(self._session, device.name, self._name, self._lease)
        self._opened: OpenedDevice | None = None
        self._generation = -1
        self._closed = False

    def sharing(self) -> AgentTransport:
        """Return a transport with files of its own over the same connection and under the same lease.

        The lease ends with the last of them. Their programs must not run at the same time.
        """
        return AgentTransport(self._connection, self._device, self._starter)

    def open(self) -> OpenedDevice:
        """Connect, take the lease, make the folder, and ask for the performance governor if it is wanted.

        Asks the device every time it is called.

        Raises:
            DeviceTrouble: LEASED, someone else has the slot; UNREACHABLE and the like after four attempts.
        """
        with self._operation():
            _with_back_off(self._open_once)
            self._connection.keep_lease()
            assert self._opened is not None  # `_open_once` has set it
            return self._opened

    def push(self, source: Path, name: str) -> None:
        """See `Transport.push`; reconnects up to three times when the connection is lost on the way.

        On a full storage it first deletes what is the SDK's own there and nobody's any more.
        """
        check_name(name)
        with self._operation():
            try:
                self._push(source, name)
            except DeviceTrouble as trouble:
                if trouble.kind is not TroubleKind.FULL:
                    raise
                self._reclaim()
                self._push(source, name)

    def _push(self, source: Path, name: str) -> None:
        for reconnections_left in range(_RECONNECTIONS, -1, -1):
            try:
                self._stay_open()
                return self._files.push(source, name)
            except DeviceTrouble as trouble:
                may_pass = trouble.kind.may_pass and not isinstance(trouble, AgentError)
                if not may_pass or trouble.kind is TroubleKind.PROTOCOL_ERROR or not reconnections_left:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def reclaim(self) -> None:
        """Make room: delete the sessions of owners whose lease has ended, and agents of versions that nobody uses.

        Raises:
            DeviceTrouble: of any kind.
        """
        with self._operation():
            self._stay_open()
            self._reclaim()

    def _reclaim(self) -> None:
        self._session.ask("reclaim", [("session", self._name), *self._lease()])

    def pull(self, name: str, destination: Path) -> None:
        """See `Transport.pull`."""
        check_name(name)
        with self._operation():
            self._stay_open()
            self._files.pull(name, destination)

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        """See `Transport.run`; the agent keeps the time limit, on the device."""
        check_name(name)
        if self._starter is not None:
            name, arguments = DSP_LAUNCHER, [name, *arguments]
        with self._operation():
            self._stay_open()
            started_s = time.monotonic()
            limit_s = min(max(time_s, 0.0), _LONGEST_RUN_S)
            fields = [
                ("session", self._name),
                *self._lease(),
                ("program", name),
                *(("arg", argument) for argument in arguments),
                *(("env", f"{key}={value}") for key, value in self._place.environment),
                ("time_s", f"{limit_s:.3f}"),
                ("memory_bytes", str(_KERNEL_MEMORY_BYTES)),
                ("cores", core_list(self._place.cores)),
                ("canary", "1" if self._device.has_canary else "0"),
            ]
            reply = self._session.call("run", fields, stop=stop, limit_s=limit_s + _RUN_SPARE_S)
            if reply is None:
                self._halt()
                return RunOutcome(_KILLED, False, True, "", time.monotonic() - started_s)
            return _run_outcome(reply, self._session.read(_RunResult, "run", reply.fields))

    def remove(self, name: str) -> None:
        """See `Transport.remove`."""
        check_name(name)
        with self._operation():
            self._stay_open()
            self._files.remove(name)

    def sense(self) -> DeviceSense:
        """Return the state of the device and of the cores that kernels run on.

        Raises:
            DeviceTrouble: of any kind.
        """
        with self._operation():
            _with_back_off(self._session.connect)
            return sense_device(self._session, self._place.cores)

    def canary(self) -> float:
        """Return the canary's seconds on the cores that kernels run on: how fast the device is now.

        Raises:
            DeviceTrouble: of any kind.
        """
        with self._operation():
            _with_back_off(self._session.connect)
            return time_canary(self._session, self._place.cores)

    def close(self) -> None:
        """See `Transport.close`: leaves the device as it was. Raises nothing, and soon ends when the device is dead.

        What another transport runs meanwhile goes on; the last one then deletes this one's files with its own.
        """
        until_s = time.monotonic() + _CLOSING_S
        held = self._lock.acquire(timeout=_CLOSING_S)
        try:
            if self._closed:
                return
            self._closed = True
            is_last = self._connection.users.leave()
            if is_last:
                self._connection.end_heartbeat(_CLOSING_S)
            may_ask = held or is_last  # else it would be in the middle of another one's question
            if may_ask and (self._opened is not None or (is_last and self._connection.opened)):
                # Stop at the first failure: each step would wait for the same silent device.
                with contextlib.suppress(SdkError):
                    self._tidy_up(until_s, is_last)
            if is_last:
                self._session.close()
        finally:
            if held:
                self._lock.release()

    def _tidy_up(self, until_s: float, is_last: bool) -> None:
        def left_s() -> float:
            return max(0.5, until_s - time.monotonic())

        self._session.connect()
        if self._opened is not None or is_last:
            fields: list[tuple[str, str]] = [("session", self._name)]
            if is_last and self._connection.is_alone:
                # A transport that was closed while the device was silent could not, and a late request makes it anew.
                fields += [*self._lease(), ("last", "1")]
            self._session.ask("clear", fields, limit_s=left_s())
        if is_last and self._connection.governor_touched:
            restore = [*self._lease(), ("set", "restore"), ("cores", "")]
            self._session.ask("governor", restore, limit_s=left_s())
        if is_last:
            release_lease(self._session, self._connection.own, limit_s=left_s())

    @contextlib.contextmanager
    def _operation(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise DeviceError(f"{self._device.name} has been closed.")
            loss = self._connection.lost_lease
            if loss is not None and loss is not self._heard_of_loss:
                self._heard_of_loss = loss
                raise loss
            try:
                yield
            except DeviceTrouble as trouble:
                if trouble.kind is TroubleKind.LEASED:
                    self._heard_of_loss = self._connection.lose_lease(trouble)
                raise

    def _lease(self, least_s: float = 0.0) -> Fields:
        return self._connection.claim_for(least_s).fields()

    def _stay_open(self) -> None:
        if self._session.connected:
            self._connection.change_over()
        if not (self._opened and self._session.connected and self._generation == self._session.generation):
            self.open()

    def _open_once(self) -> None:
        self._session.connect()
        self._connection.change_over()
        fields = [("session", self._name), *self._lease()]
        if self._connection.is_first:
            fields.append(("first", "1"))
        opened = self._session.ask_for(OpenedDevice, "open", fields)
        if self._opened is not None and self._opened.boot != opened.boot:
            self._files.forget()
        if self._place.performance_mode:
            self._set_performance()
        if self._starter is not None:
            for path, name in self._starter.files(opened.architecture):
                self._files.push(path, name)
        self._opened = opened
        self._generation = self._session.generation

    def _set_performance(self) -> None:
        """Ask for the performance governor, which a device may refuse."""
        fields = [*self._lease(), ("set", "performance"), ("cores", core_list(self._place.cores))]
        try:
            self._session.ask("governor", fields)
        except AgentError as error:
            if error.kind is TroubleKind.LEASED:
                raise
        else:
            self._connection.governor_touched = True

    def _halt(self) -> None:
        """Wait for the end of the run, which the agent begins when the connection closes."""
        with contextlib.suppress(DeviceError):  # an agent that cannot be asked ends the run by itself
            self._session.ask("halt", self._lease(), limit_s=_CLOSING_S)


def _run_outcome(reply: Reply, result: _RunResult) -> RunOutcome:
    canary_s = (result.canary_before_s, result.canary_after_s)
    return RunOutcome(
        exit_code=-result.signal if result.signal else result.exit_code,
        timed_out=result.timed_out,
        stopped=False,
        output=reply.output.decode("utf-8", "replace"),
        duration_s=result.duration_s,
        canary_s=tuple(time_s for time_s in canary_s if time_s is not None),
        boot=result.boot,
    )


def _with_back_off(attempt: Callable[[], None]) -> None:
    """Call `attempt`, and again after growing pauses while its trouble may pass, four times in all."""
    for pause_s in _BACK_OFF_S:
        try:
            attempt()
            return
        except DeviceTrouble as trouble:
            if not trouble.kind.may_pass:
                raise
        time.sleep(pause_s)
    attempt()
