"""Requests to the device agent and its replies: bytes to typed events, fields to dataclasses."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, NoReturn, TypeVar

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.checks import Unfit, any_text, number, one_of, whole_number
from halide_autotune.targets.values.records import record
from halide_autotune.targets.values.texts import printable

T = TypeVar("T")

# Longer requests travel as a file: not every device takes a longer command line.
LONGEST_WORD_REQUEST_BYTES = 2400
_LONGEST_REQUEST_BYTES = 2**20
_LONGEST_LINE_BYTES = 2**20
_LONGEST_TEXT = 300
_NOISE_BYTES = 4096
_KEY = re.compile(r"[a-z0-9_]+", re.ASCII)
_NONCE = re.compile(r"[0-9a-f]{16}", re.ASCII)
_LINE = re.compile(rb"@([0-9a-f]{16}) ([0-9a-f]{8}) (\{.*\})\r*\Z")
_error_kind = one_of(("usage", "lease", "full", "io", "exec", "checksum"))


@dataclass(frozen=True)
class AliveEvent:
    """The agent is working on the request."""


@dataclass(frozen=True)
class OutputEvent:
    """A piece of a program's output; untrusted."""

    data: bytes


@dataclass(frozen=True)
class ResultEvent:
    """The operation succeeded; `fields` have JSON's types."""

    fields: Mapping[str, object]


@dataclass(frozen=True)
class ErrorEvent:
    """The operation failed.

    Attributes:
        kind: 'usage', 'lease', 'full', 'io', 'exec' or 'checksum'.
        message: the agent's message, printable.
        fields: further fields, of JSON's types.
    """

    kind: str
    message: str
    fields: Mapping[str, object]


AgentEvent = AliveEvent | OutputEvent | ResultEvent | ErrorEvent


def encode_request(fields: Iterable[tuple[str, str]], nonce: str) -> bytes:
    """Return the bytes of a request: the nonce, then the fields in order.

    Raises:
        UsageError: a value has a NUL or is not text, or the request is too long.
        ValueError: a key or the nonce is malformed; a bug of the SDK.
    """
    if not _NONCE.fullmatch(nonce):
        raise ValueError(f"{nonce!r} is no nonce")
    parts = []
    for key, value in (("nonce", nonce), *fields):
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no field of a request")
        try:
            content = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise UsageError(f"The {key} {value!r} has a character that cannot be sent to a device.") from None
        if b"\0" in content:
            raise UsageError(f"The {key} {value!r} has a NUL character, which programs cannot receive.")
        parts.append(key.encode() + b"=" + content + b"\0")
    request = b"".join(parts)
    if len(request) > _LONGEST_REQUEST_BYTES:
        raise UsageError(f"The request has {len(request)} bytes; a device takes at most {_LONGEST_REQUEST_BYTES}.")
    return request


def request_word(request: bytes) -> str:
    """Return a request as one word of a command line."""
    return base64.urlsafe_b64encode(request).rstrip(b"=").decode()


def core_list(cores: Iterable[int]) -> str:
    """Return cores as the agent takes them."""
    return ",".join(str(core) for core in cores)


class ReplyParser:
    """Finds the agent's events in the bytes of a connection.

    Only lines with the request's nonce and the right checksum count. The rest is noise; its end is kept for error
    messages. Memory is bounded.

    Attributes:
        damaged_lines: lines that look like events but are not.
    """

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce.encode()
        self._line = b""
        self._noise = b""
        self.damaged_lines = 0

    @property
    def noise(self) -> str:
        """The last 4 KiB that were not events, printable."""
        return printable((self._noise + self._line)[-_NOISE_BYTES:].decode("utf-8", "replace"))

    def feed(self, data: bytes) -> list[AgentEvent]:
        """Return the events that `data` completes."""
        *lines, self._line = (self._line + data).split(b"\n")
        # What is too long for an event is noise, whatever follows on its line.
        self._line = self._line[-_LONGEST_LINE_BYTES:]
        return [event for line in lines if (event := self._read_line(line)) is not None]

    def _read_line(self, line: bytes) -> AgentEvent | None:
        # A prompt or half a message may precede the event on its line.
        match = _LINE.search(line)
        event = None
        if match is not None:
            nonce, crc, text = match.groups()
            if nonce == self._nonce and int(crc, 16) == zlib.crc32(text):
                event = _read_event(text)
            self.damaged_lines += event is None
        noise = line + b"\n" if match is None or event is None else line[: match.start()]
        self._noise = (self._noise + noise)[-_NOISE_BYTES:]
        return event


def _short_text(value: object) -> str:
    return printable(any_text(value))[:_LONGEST_TEXT]


Printable = Annotated[str, _short_text]
"""In a dataclass for `read_reply`: a short, printable text of a device."""
FileBytes = Annotated[int, whole_number(0, 2**63 - 1)]
"""The same for the size of a file."""
FreeBytes = Annotated[float, number(-1, 2.0**80)]
"""The same for what is left of a storage; -1 where the device cannot tell."""


def read_reply(kind: type[T], fields: object, source: str) -> T:
    """Return the fields of a device's message as a dataclass; keys that it does not declare are ignored.

    Args:
        source: where the message comes from, the start of the error message.

    Raises:
        DeviceTrouble: PROTOCOL_ERROR, a field is missing or has a wrong value.
    """
    try:
        return record(kind, passes_unknown=True)(fields)
    except Unfit as error:
        raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, error.message(source)) from error


def _read_event(text: bytes) -> AgentEvent | None:
    try:
        fields = json.loads(text.decode(), parse_constant=_refuse)
        event = fields.pop("event", None)
        if event == "alive":
            return AliveEvent()
        if event == "output":
            return OutputEvent(base64.b64decode(any_text(fields.get("data")), validate=True))
        if event == "result":
            return ResultEvent(fields)
        if event == "error":
            kind, message = _error_kind(fields.pop("kind", None)), any_text(fields.pop("message", None))
            return ErrorEvent(kind, printable(message), fields)
    except (ValueError, RecursionError, Unfit):
        pass
    return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
