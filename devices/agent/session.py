"""A connection to a device with the agent on it: one operation after the other."""

from __future__ import annotations

import contextlib
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.agent.back_off import PASSING_KINDS
from devices.agent.program import AgentProgram
from devices.agent.reply_fields import ReplyFields
from devices.agent.wire import (
    LONGEST_WORD_REQUEST_BYTES,
    AliveEvent,
    ErrorEvent,
    OutputEvent,
    ReplyParser,
    ResultEvent,
    encode_request,
    printable,
    request_word,
)
from devices.device import Device
from devices.device_link import DeviceLink, join_words
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.remote_place import AdbAddress
from targets.errors import DeviceError, UsageError
from targets.process.stop_signal import StopSignal

Fields = Sequence[tuple[str, str]]

_SSH_ROOT = ".cache/halide-autotune-sdk"
_ADB_ROOT = "/data/local/tmp/halide-autotune-sdk"
_SILENCE_S = 10.0
_END_OF_STREAM_S = 5.0
# Links give something several times a second. A process that was stopped for longer has not listened meanwhile.
_LONGEST_LOOK_S = 1.0
_OPERATION_LIMIT_S = 900.0
_LONGEST_LEASE_S = 1e9
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
_NEXT_STEPS = {
    TroubleKind.LEASED: "Wait until it is free, or use another device.",
    TroubleKind.FULL: "Free some storage of the device.",
}


class AgentError(DeviceTrouble):
    """The agent's own word that an operation failed.

    Attributes:
        event: what it said.
    """

    def __init__(self, device: str, event: ErrorEvent) -> None:
        kind = _KINDS[event.kind]
        message, next_step = f"{device}: {event.message[:1000]}", _NEXT_STEPS.get(kind, "")
        if event.kind == "exec":
            next_step = "See that its profile is right, and that programs may run in its folder (mount option noexec)."
        if kind is TroubleKind.LEASED:
            message += _lease_times(event.fields)
            next_step += f" Where nobody uses it any more: `sdk devices release {device} --force`."
        super().__init__(kind, message, next_step=next_step)
        self.event = event


def _lease_times(fields: Mapping[str, object]) -> str:
    since_s, left_s = fields.get("since_s"), fields.get("expires_in_s")
    if not isinstance(since_s, int | float) or not isinstance(left_s, int | float):
        return ""
    if not (0 <= since_s < _LONGEST_LEASE_S and 0 <= left_s < _LONGEST_LEASE_S):
        return ""
    return f" It has been so for {since_s:.0f} s, and ends in {left_s:.0f} s unless it is renewed."


class _NotStarted(DeviceTrouble):
    """The agent is not there, or cannot be run."""


@dataclass(frozen=True)
class Reply:
    """What an operation gave.

    Attributes:
        fields: of its result.
        output: what a program printed, its end.
    """

    fields: ReplyFields
    output: bytes


class AgentSession:
    """Operations of the agent over a link; the agent is uploaded when it is missing.

    Used by one thread at a time. After trouble that ends a connection the link is closed; `connect` makes it anew.

    Args:
        agent: gives the program for what the device's `uname -m` says.

    Raises:
        UsageError: the device's folder is one that cannot be used.
    """

    def __init__(self, link: DeviceLink, device: Device, agent: Callable[[str], AgentProgram]) -> None:
        if device.remote is None:
            raise ValueError(f"{device.name} is not behind a link")
        default = _ADB_ROOT if isinstance(device.remote.address, AdbAddress) else _SSH_ROOT
        self.root = _check_folder(device.remote.folder or default)
        self.connected = False
        self.generation = 0
        """Grows whenever what was known of the device's state is in doubt: a new connection, a lost folder."""
        self._link = link
        self._device = device.name
        self._agent = agent
        self._program: AgentProgram | None = None

    def connect(self) -> None:
        """Connect, unless connected; tries once.

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
        """Carry out one operation of the agent.

        Returns:
            None when `stop` was raised before its end; the connection to it was hung up then.

        Raises:
            AgentError: the agent refused or failed.
            DeviceTrouble: LOST, TIMEOUT (also when it takes longer than `limit_s`), PROTOCOL_ERROR, or BROKEN when the
                agent cannot be run.
            UsageError: a field has a character that cannot be sent.
        """
        self.connect()
        nonce = secrets.token_hex(8)
        request = encode_request(fields, nonce)
        with self._guard():
            word = self._send_request(request)
            try:
                return self._exchange([self._agent_path(), command, word], nonce, stop, limit_s)
            except _NotStarted:
                # Nothing has been done yet: it is not there, or somebody has deleted it.
                self._upload_agent()
                self.generation += 1
                return self._exchange([self._agent_path(), command, word], nonce, stop, limit_s)

    def ask(self, command: str, fields: Fields, *, limit_s: float = _OPERATION_LIMIT_S) -> ReplyFields:
        """`call` for an operation that is not stopped, and whose result is all."""
        reply = self.call(command, fields, limit_s=limit_s)
        assert reply is not None  # nothing was given that could stop it
        return reply.fields

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
        """Let go of the connection; quiet, and `connect` may follow."""
        self.connected = False
        with contextlib.suppress(DeviceError):
            self._link.close()

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except AgentError:
            raise  # it came over a sound connection
        except DeviceTrouble as trouble:
            if trouble.kind in PASSING_KINDS:
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
                    f"{self._device} prints without end where it is asked what machine it is.",
                    next_step="Let its shell, and what is started at a login, print nothing.",
                )
        lines = heard.decode("utf-8", "replace").splitlines()
        # A server may greet before.
        for line in reversed(lines):
            if _MACHINE.fullmatch(line.strip()):
                return line.strip()
        shown = printable(heard.decode("utf-8", "replace"))[-_SHOWN_CHARACTERS:]
        kind = TroubleKind.BROKEN if shown else TroubleKind.LOST
        raise DeviceTrouble(kind, f"{self._device} does not say what machine it is; it says: {shown or 'nothing'}")

    def _watched(self, words: Sequence[str], limit_s: float) -> Generator[bytes, None, None]:
        """What the link's stream yields, hung up in the end whatever happens.

        Raises:
            DeviceTrouble: TIMEOUT, it did not end within `limit_s`.
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
                        f"{self._device} took longer than {limit_s:.0f} s for `{asked}`.",
                        next_step="See how busy it is, and what its shell does when somebody logs in.",
                    )
        finally:
            hang_up = getattr(stream, "close", None)
            if hang_up is not None:
                hang_up()

    def _exchange(self, words: Sequence[str], nonce: str, stop: StopSignal | None, limit_s: float) -> Reply | None:
        exchange = _Exchange(self._device, ReplyParser(nonce))
        with contextlib.closing(self._watched(words, limit_s)) as stream:
            for data in stream:
                exchange.take(data)
                if exchange.is_over:
                    break
                if stop is not None and stop.is_set():
                    return None
        return exchange.reply(words[1])

    def _send_request(self, request: bytes) -> str:
        if len(request) <= LONGEST_WORD_REQUEST_BYTES:
            return request_word(request)
        name = f"request-{secrets.token_hex(8)}"
        with tempfile.NamedTemporaryFile() as file:
            file.write(request)
            file.flush()
            self._link.put(Path(file.name), f"{self.root}/{name}")
        return f"@{name}"

    def _upload_agent(self) -> None:
        try:
            self._upload_agent_once()
        except (AgentError, _NotStarted):
            self._upload_agent_once()

    def _upload_agent_once(self) -> None:
        assert self._program is not None  # `connect` has set it
        path = f"{self.root}/upload-{secrets.token_hex(8)}"
        self._link.put(self._program.path, path)
        nonce = secrets.token_hex(8)
        word = request_word(encode_request([("sha256", self._program.sha256)], nonce))
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
    """One operation's reply as it comes."""

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
        """Whether the last event has come and the stream, which should have ended, has been waited for."""
        return self._final is not None and self._silent_s > _END_OF_STREAM_S

    def take(self, data: bytes) -> None:
        """Look at what came, and at the clock."""
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
                    raise DeviceTrouble(
                        TroubleKind.PROTOCOL_ERROR, f"{self._device} sends more output than was asked for."
                    )
            elif not isinstance(event, AliveEvent):
                self._final = event
        if self._final is None and self._silent_s > _SILENCE_S:
            raise DeviceTrouble(TroubleKind.TIMEOUT, f"{self._device} has been silent for {_SILENCE_S:.0f} s.")

    def reply(self, command: str) -> Reply:
        """The reply, now that the stream has ended."""
        if isinstance(self._final, ErrorEvent):
            raise AgentError(self._device, self._final)
        if self._final is not None:
            return Reply(ReplyFields(self._final.fields, f"{self._device}, asked to {command},"), bytes(self._output))
        shown = self._parser.noise[-_SHOWN_CHARACTERS:]
        if self._parser.damaged_lines:
            raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, f"What {self._device} sends is damaged on the way.")
        if not self._heard and shown:
            raise _NotStarted(
                TroubleKind.BROKEN, f"The SDK's agent cannot be run on {self._device}; the device says: {shown}"
            )
        raise DeviceTrouble(TroubleKind.LOST, f"The connection to {self._device} was lost.")


def full_storage(device: str, error: AgentError, size_bytes: int) -> DeviceTrouble | None:
    """The trouble FULL, when a file of `size_bytes` arrived cut short for lack of room; else None."""
    if error.event.kind != "checksum":
        return None
    fields = ReplyFields(error.event.fields, device)
    arrived_bytes, free_bytes = fields.number("size_bytes"), fields.number("free_bytes")
    if arrived_bytes >= size_bytes or free_bytes >= size_bytes:
        return None
    return no_room(device, size_bytes, free_bytes)


def no_room(device: str, size_bytes: int, free_bytes: float) -> DeviceTrouble:
    """The trouble FULL, with its sizes."""
    return DeviceTrouble(
        TroubleKind.FULL,
        f"The storage of {device} is full: a file has {size_bytes / 2**20:.1f} MiB, "
        f"and {max(free_bytes, 0) / 2**20:.1f} MiB are free.",
        next_step=_NEXT_STEPS[TroubleKind.FULL],
    )


def _check_folder(folder: str) -> str:
    try:
        join_words([folder])
    except ValueError:
        folder = ""
    if not folder or folder.startswith("-") or folder == "/" or ".." in folder.split("/"):
        raise UsageError(
            "A device's folder must be a path of letters, digits and _@%+=:,./- without '..'.",
            next_step="Choose another folder in the inventory.",
        )
    return folder.rstrip("/")
