"""A connection to a device with the agent on it: one operation at a time."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from halide_autotune.devices.agent.program import AgentProgram
from halide_autotune.devices.agent.protocol import (
    LONGEST_WORD_REQUEST_BYTES,
    AliveEvent,
    ErrorEvent,
    FileBytes,
    FreeBytes,
    OutputEvent,
    ReplyParser,
    ResultEvent,
    encode_request,
    read_reply,
    request_word,
)
from halide_autotune.devices.device import Device
from halide_autotune.devices.device_link import DeviceLink
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import AdbAddress
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.checks import Unfit, number
from halide_autotune.targets.values.texts import printable

T = TypeVar("T")
Fields = Sequence[tuple[str, str]]

_SSH_ROOT = ".cache/halide-autotune-sdk"
_ADB_ROOT = "/data/local/tmp/halide-autotune-sdk"
_SILENCE_S = 10.0
_END_OF_STREAM_S = 5.0
# Links yield several times a second: after a longer pause this process was stopped, and the device was not silent.
_LONGEST_LOOK_S = 1.0
_OPERATION_LIMIT_S = 900.0
_SHOWN_CHARACTERS = 300
_MOST_OUTPUT_BYTES = 2**20
_MACHINE = re.compile(r"[A-Za-z0-9_]{2,32}", re.ASCII)
_MOST_GREETING_BYTES = 2**16
_KINDS = {
    "usage": TroubleKind.BROKEN,
    "lease": TroubleKind.LEASED,
    "full": TroubleKind.FULL,
    "io": TroubleKind.BROKEN,
    "exec": TroubleKind.BROKEN,
    "checksum": TroubleKind.PROTOCOL_ERROR,
}
_FREE_STORAGE = "Free some storage on the device, or choose another folder."
_lease_time_s = number(0, 1e9)


class AgentError(DeviceTrouble):
    """The agent reports that an operation failed.

    Attributes:
        event: its report.
    """

    def __init__(self, device: str, event: ErrorEvent) -> None:
        kind, message, next_step = _KINDS[event.kind], f"{device}: {event.message[:1000]}", ""
        if event.kind == "exec":
            next_step = "Check its profile, and that its folder allows programs (no mount option noexec)."
        if kind is TroubleKind.FULL:
            next_step = _FREE_STORAGE
        if kind is TroubleKind.LEASED:
            message += _lease_times(event.fields)
            next_step = (
                "Wait until it is free, or use another device. "
                f"If nobody uses it any more, run `sdk devices release {device} --force`."
            )
        super().__init__(kind, message, next_step=next_step)
        self.event = event


def _lease_times(fields: Mapping[str, object]) -> str:
    try:
        since_s, left_s = (_lease_time_s(fields.get(key)) for key in ("since_s", "expires_in_s"))
    except Unfit:
        return ""
    return f" The lease was taken {since_s:.0f} s ago and ends in {left_s:.0f} s unless it is renewed."


class _NotStarted(DeviceTrouble):
    """The agent is missing or cannot run."""


@dataclass(frozen=True)
class Reply:
    """The outcome of an operation.

    Attributes:
        fields: of its result, with JSON's types.
        output: the end of what a program printed.
    """

    fields: Mapping[str, object]
    output: bytes


@dataclass(frozen=True)
class _Arrived:
    size_bytes: FileBytes
    free_bytes: FreeBytes


class AgentSession:
    """Runs the agent's operations over a link, and uploads the agent when it is missing.

    Used by one thread at a time. Trouble that ends the connection closes the link; `connect` opens it again.

    Args:
        agent: returns the program for what the device's `uname -m` prints.

    Attributes:
        root: the SDK's folder on the device.
        generation: grows whenever the device's files may have changed: a new connection, a lost folder.
    """

    def __init__(self, link: DeviceLink, device: Device, agent: Callable[[str], AgentProgram]) -> None:
        if device.remote is None:
            raise ValueError(f"{device.name} is not behind a link")
        default = _ADB_ROOT if isinstance(device.remote.address, AdbAddress) else _SSH_ROOT
        self.root = (device.remote.folder or default).rstrip("/")
        self.connected = False
        self.generation = 0
        self._link = link
        self._device = device.name
        self._agent = agent
        self._program: AgentProgram | None = None

    def connect(self) -> None:
        """Connect unless connected; tries once.

        Raises:
            DeviceTrouble: of any kind.
        """
        if self.connected:
            return
        with self._guard():
            self._link.connect()
            if self._program is None:
                self._program = self._agent(self._ask_machine())
            self.connected = True
            self.generation += 1

    def call(
        self,
        command: str,
        fields: Fields,
        *,
        stop: StopSignal | None = None,
        limit_s: float = _OPERATION_LIMIT_S,
    ) -> Reply | None:
        """Run one operation of the agent.

        Returns:
            None when `stop` was set before the end; the operation's connection is closed then.

        Raises:
            AgentError: the agent refused or failed.
            DeviceTrouble: LOST; TIMEOUT, also after `limit_s`; PROTOCOL_ERROR; BROKEN, the agent cannot run.
            UsageError: a field has a character that cannot be sent.
        """
        self.connect()
        nonce = secrets.token_hex(8)
        request = encode_request(fields, nonce)
        with self._guard():
            word = self._send_request(request)
            try:
                return self._exchange([self._agent_path(), command, word], nonce, stop, limit_s)
            except _NotStarted:  # it was never uploaded, or someone deleted it: nothing has happened yet
                self._upload_agent()
                self.generation += 1
                return self._exchange([self._agent_path(), command, word], nonce, stop, limit_s)

    def ask(self, command: str, fields: Fields, *, limit_s: float = _OPERATION_LIMIT_S) -> Mapping[str, object]:
        """Run an operation that nothing stops, and return the fields of its result."""
        reply = self.call(command, fields, limit_s=limit_s)
        assert reply is not None  # nothing could stop it
        return reply.fields

    def ask_for(self, kind: type[T], command: str, fields: Fields, *, limit_s: float = _OPERATION_LIMIT_S) -> T:
        """Run an operation and return its result as a dataclass; see `read_reply`."""
        return self.read(kind, command, self.ask(command, fields, limit_s=limit_s))

    def read(self, kind: type[T], command: str, fields: Mapping[str, object]) -> T:
        """Return the fields of an operation's result as a dataclass; see `read_reply`."""
        return read_reply(kind, fields, f"The reply of {self._device} to '{command}'")

    def put(self, source: Path, path: str) -> None:
        """Copy a local file to `path` below the agent's folder; see `DeviceLink.put`."""
        self.connect()
        with self._guard():
            self._link.put(source, f"{self.root}/{path}")

    def get(self, path: str, destination: Path) -> None:
        """Copy a file below the agent's folder to this machine; see `DeviceLink.get`."""
        self.connect()
        with self._guard():
            self._link.get(f"{self.root}/{path}", destination)

    def close(self) -> None:
        """Close the connection; raises nothing, and `connect` may follow."""
        self.connected = False
        with contextlib.suppress(DeviceError):
            self._link.close()

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except AgentError:
            raise  # the connection is sound
        except DeviceTrouble as trouble:
            if trouble.kind.may_pass:
                self.close()
            raise

    def _agent_path(self) -> str:
        assert self._program is not None  # `connect` has set it
        return f"{self.root}/agent-{self._program.sha256[:16]}"

    def _ask_machine(self) -> str:
        heard = bytearray()
        for data in self._watched(["uname", "-m"], _SILENCE_S):
            heard += data[:4096]
            if len(heard) > _MOST_GREETING_BYTES:
                raise DeviceTrouble(
                    TroubleKind.BROKEN,
                    f"The output of `uname -m` on {self._device} does not end.",
                    next_step="Remove what prints from the login scripts of its shell.",
                )
        text = heard.decode("utf-8", "replace")
        for line in reversed(text.splitlines()):  # a greeting may come first
            if _MACHINE.fullmatch(line.strip()):
                return line.strip()
        shown = printable(text)[-_SHOWN_CHARACTERS:]
        kind = TroubleKind.BROKEN if shown else TroubleKind.LOST
        raise DeviceTrouble(kind, f"{self._device} does not print its machine type; it prints: {shown or 'nothing'}")

    def _watched(self, words: Sequence[str], limit_s: float) -> Generator[bytes, None, None]:
        """Yield what the link's stream yields, and always close it.

        Raises:
            DeviceTrouble: TIMEOUT, the stream did not end within `limit_s`.
        """
        stream = self._link.stream(words)
        started_s = time.monotonic()
        try:
            for data in stream:
                yield data
                if time.monotonic() - started_s > limit_s:
                    asked = " ".join([Path(words[0]).name, *words[1:2]])
                    raise DeviceTrouble(
                        TroubleKind.TIMEOUT,
                        f"`{asked}` on {self._device} took longer than {limit_s:.0f} s.",
                        next_step="Check the device's load, and what its shell runs at login.",
                    )
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()

    def _exchange(self, words: Sequence[str], nonce: str, stop: StopSignal | None, limit_s: float) -> Reply | None:
        exchange = _Exchange(self._device, ReplyParser(nonce))
        with contextlib.closing(self._watched(words, limit_s)) as stream:
            for data in stream:
                exchange.take(data)
                if exchange.is_over:
                    break
                if stop is not None and stop.is_set():
                    return None
        return exchange.reply()

    def _send_request(self, request: bytes) -> str:
        if len(request) <= LONGEST_WORD_REQUEST_BYTES:
            return request_word(request)
        name = f"request-{secrets.token_hex(8)}"
        with scratch_folder("request") as folder:
            (folder / name).write_bytes(request)
            self._link.put(folder / name, f"{self.root}/{name}")
        return f"@{name}"

    def _upload_agent(self) -> None:
        try:
            self._upload_agent_once()
        except (AgentError, _NotStarted):
            self._upload_agent_once()

    def _upload_agent_once(self) -> None:
        assert self._program is not None  # `connect` has set it
        name = f"upload-{secrets.token_hex(8)}"
        path = f"{self.root}/{name}"
        self._link.put(self._program.path, path)
        nonce = secrets.token_hex(8)
        word = request_word(encode_request([("sha256", self._program.sha256), ("name", name)], nonce))
        try:
            self._exchange([path, "settle", word], nonce, None, _OPERATION_LIMIT_S)
        except _NotStarted:
            for _ in self._watched(["rm", "-f", path], _SILENCE_S):
                pass
            raise
        except AgentError as error:
            if full := full_storage(self._device, error, self._program.path.stat().st_size):
                raise full from error
            raise


class _Exchange:
    """Collects the reply to one operation."""

    def __init__(self, device: str, parser: ReplyParser) -> None:
        self._device = device
        self._parser = parser
        self._heard = False
        self._looked_at_s = time.monotonic()
        self._silent_s = 0.0
        self._final: ResultEvent | ErrorEvent | None = None
        self._output = bytearray()

    @property
    def is_over(self) -> bool:
        """Whether the last event came a while ago, and the stream still has not ended."""
        return self._final is not None and self._silent_s > _END_OF_STREAM_S

    def take(self, data: bytes) -> None:
        """Take what came, possibly nothing, and check for silence."""
        now_s = time.monotonic()
        self._silent_s += min(now_s - self._looked_at_s, _LONGEST_LOOK_S)
        self._looked_at_s = now_s
        for event in self._parser.feed(data):
            if self._final is not None:
                continue
            self._heard, self._silent_s = True, 0.0
            if isinstance(event, OutputEvent):
                self._output += event.data
                if len(self._output) > _MOST_OUTPUT_BYTES:
                    message = f"{self._device} sends more than {_MOST_OUTPUT_BYTES} bytes of output."
                    raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, message)
            elif not isinstance(event, AliveEvent):
                self._final = event
        if self._final is None and self._silent_s > _SILENCE_S:
            raise DeviceTrouble(TroubleKind.TIMEOUT, f"{self._device} has been silent for {_SILENCE_S:.0f} s.")

    def reply(self) -> Reply:
        """Return the reply, now that the stream has ended."""
        if isinstance(self._final, ErrorEvent):
            raise AgentError(self._device, self._final)
        if self._final is not None:
            return Reply(self._final.fields, bytes(self._output))
        shown = self._parser.noise[-_SHOWN_CHARACTERS:]
        if self._parser.damaged_lines:
            raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, f"Data from {self._device} is damaged on the way.")
        if not self._heard and shown:
            message = f"The SDK's agent cannot run on {self._device}; the device prints: {shown}"
            raise _NotStarted(TroubleKind.BROKEN, message)
        raise DeviceTrouble(TroubleKind.LOST, f"The connection to {self._device} was lost.")


def full_storage(device: str, error: AgentError, size_bytes: int) -> DeviceTrouble | None:
    """Return the trouble FULL when a file of `size_bytes` arrived cut short for lack of room, else None."""
    if error.event.kind != "checksum":
        return None
    arrived = read_reply(_Arrived, error.event.fields, device)
    if arrived.size_bytes >= size_bytes or arrived.free_bytes >= size_bytes:
        return None
    return no_room(device, size_bytes, arrived.free_bytes)


def no_room(device: str, size_bytes: int, free_bytes: float) -> DeviceTrouble:
    """Return the trouble FULL for a file that does not fit."""
    return DeviceTrouble(
        TroubleKind.FULL,
        f"The storage of {device} is full: the file needs {size_bytes / 2**20:.1f} MiB, "
        f"and {max(free_bytes, 0) / 2**20:.1f} MiB are free.",
        next_step=_FREE_STORAGE,
    )
