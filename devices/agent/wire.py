"""What goes to the device agent and what comes back: bytes to typed events, and nothing else."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from targets.errors import UsageError

LONGEST_REQUEST_BYTES = 2**20
# A command line has room for more, but not on every device.
LONGEST_WORD_REQUEST_BYTES = 2400
_LONGEST_LINE_BYTES = 2**20
_NOISE_BYTES = 4096
_LONGEST_S = 1e9
_KEY = re.compile(r"[a-z0-9_]+", re.ASCII)
_NONCE = re.compile(r"[0-9a-f]{16}", re.ASCII)
_LINE = re.compile(rb"@([0-9a-f]{16}) ([0-9a-f]{8}) (\{.*\})\r*\Z")
_ERROR_KINDS = frozenset({"usage", "lease", "full", "io", "exec", "checksum"})


@dataclass(frozen=True)
class AliveEvent:
    """The agent is at work, for `elapsed_s` seconds already."""

    elapsed_s: float


@dataclass(frozen=True)
class OutputEvent:
    """A piece of what a program printed; untrusted."""

    data: bytes


@dataclass(frozen=True)
class ResultEvent:
    """The operation succeeded; `fields` are of JSON's types."""

    fields: Mapping[str, object]


@dataclass(frozen=True)
class ErrorEvent:
    """The operation failed.

    Attributes:
        kind: 'usage', 'lease', 'full', 'io', 'exec' or 'checksum'.
        message: the agent's message, printable.
        fields: further ones, of JSON's types.
    """

    kind: str
    message: str
    fields: Mapping[str, object]


AgentEvent = AliveEvent | OutputEvent | ResultEvent | ErrorEvent


def encode_request(fields: Iterable[tuple[str, str]], nonce: str) -> bytes:
    """The bytes of a request: the nonce, then the fields in their order.

    Raises:
        UsageError: a value holds a NUL character, is no text, or the request is longer than the agent takes.
        ValueError: a key or the nonce is malformed. That is a fault of the SDK.
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
            raise UsageError(f"The {key} {value!r} has a character that a device cannot be sent.") from None
        if b"\0" in content:
            raise UsageError(f"The {key} {value!r} has a NUL character, which no program can be given.")
        parts.append(key.encode() + b"=" + content + b"\0")
    request = b"".join(parts)
    if len(request) > LONGEST_REQUEST_BYTES:
        raise UsageError(f"A request to a device has {len(request)} bytes; it may have {LONGEST_REQUEST_BYTES}.")
    return request


def request_word(request: bytes) -> str:
    """A request as one word of a command line."""
    return base64.urlsafe_b64encode(request).rstrip(b"=").decode()


class ReplyParser:
    """Finds the agent's events in what comes over the wire.

    Only lines with the request's nonce and the right checksum count. All else is noise: its end is kept for error
    messages. The memory it takes is bounded whatever comes.
    """

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce.encode()
        self._line = bytearray()
        self._overlong = False
        self._noise = bytearray()
        self.damaged_lines = 0

    @property
    def noise(self) -> str:
        """The last 4 KiB of what was no event, printable, with blanks for control characters."""
        text = bytes(self._noise + self._line)[-_NOISE_BYTES:].decode("utf-8", "replace")
        return printable(text)

    def feed(self, data: bytes) -> list[AgentEvent]:
        """The events that `data` completes."""
        events = []
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._extend(piece)
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._extend(rest)
        return events

    def _extend(self, piece: bytes) -> None:
        if len(self._line) + len(piece) > _LONGEST_LINE_BYTES:
            self._overlong = True
            self._add_noise(bytes(self._line) + piece)
            self._line.clear()
        else:
            self._line += piece

    def _add_noise(self, data: bytes) -> None:
        self._noise += data[-_NOISE_BYTES:]
        del self._noise[:-_NOISE_BYTES]

    def _end_line(self) -> AgentEvent | None:
        line = bytes(self._line)
        self._line.clear()
        overlong, self._overlong = self._overlong, False
        # A prompt or a half-finished message may stand before the event.
        match = None if overlong else _LINE.search(line)
        if match is None:
            self._add_noise(line + b"\n")
            return None
        nonce, crc, text = match.groups()
        event = None
        if nonce == self._nonce and int(crc, 16) == zlib.crc32(text):
            event = _read_event(text)
        if event is None:
            self.damaged_lines += 1
            self._add_noise(line + b"\n")
        elif match.start() > 0:
            self._add_noise(line[: match.start()])
        return event


def printable(text: str) -> str:
    """`text` on one line, with a blank for every character that is not printable."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _read_event(text: bytes) -> AgentEvent | None:
    try:
        event = json.loads(text.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    what = event.pop("event", None)
    if what == "alive":
        elapsed_s = event.get("elapsed_s")
        if type(elapsed_s) in (int, float) and 0 <= elapsed_s < _LONGEST_S:
            return AliveEvent(float(elapsed_s))
        return None
    if what == "output":
        return _read_output(event.get("data"))
    if what == "result":
        return ResultEvent(event)
    if what == "error":
        kind, message = event.pop("kind", None), event.pop("message", None)
        if kind in _ERROR_KINDS and isinstance(message, str):
            return ErrorEvent(kind, printable(message), event)
    return None


def _read_output(data: object) -> OutputEvent | None:
    if not isinstance(data, str):
        return None
    try:
        return OutputEvent(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
