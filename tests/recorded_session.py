"""What a device said in a session with the agent, and a link that says it again: as it was, or spoiled."""

from __future__ import annotations

import base64
import random
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.contract.local_link import LocalLink

Spoil = Callable[[bytes], bytes]

_LINE = re.compile(rb"@([0-9a-f]{16}) ([0-9a-f]{8}) (\{.*\})")
_NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_TEXT = re.compile(rb'"[^"\\]*"')
# What programs have choked on before.
_NUMBERS = b"0 -1 1e308 -1e308 1e999 5e-324 NaN Infinity 9223372036854775808 0.5 null true [] {}".split()
_TEXTS = [b'"\\u001b[2J"', b'"\\ud800"', b'"../../../etc/passwd"', b'""', b'"' + b"x" * 5000 + b'"', b"[[[[]]]]", b"7"]


@dataclass(frozen=True)
class Recording:
    """What a device said, in the order in which it was asked.

    Attributes:
        streams: the command and its output.
        files: what was fetched.
    """

    streams: list[tuple[str, bytes]] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)


class RecordingLink(LocalLink):
    """A link to this machine that keeps what is said."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.recording = Recording()

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        said = bytearray()
        try:
            for data in super().stream(words):
                said += data
                yield data
        finally:
            self.recording.streams.append((words[1], bytes(said)))

    def get(self, path: str, destination: Path) -> None:
        super().get(path, destination)
        self.recording.files.append(destination.read_bytes())


class ReplayLink:
    """Says what was recorded, `spoil` done to it, under the nonce of who asks; then nothing more."""

    def __init__(self, recording: Recording, spoil: Spoil) -> None:
        self._streams, self._files = iter(recording.streams), iter(recording.files)
        self._spoil = spoil

    def connect(self) -> None:
        pass

    def put(self, source: Path, path: str) -> None:
        pass

    def get(self, path: str, destination: Path) -> None:
        destination.write_bytes(self._spoil(next(self._files, b"")))

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        _, said = next(self._streams, ("", b""))
        yield under_nonce(self._spoil(said), words)

    def close(self) -> None:
        pass


def under_nonce(said: bytes, words: Sequence[str]) -> bytes:
    """What was said as the answer to another request."""
    if len(words) < 3:
        return said
    request = base64.urlsafe_b64decode(words[2] + "=" * (-len(words[2]) % 4))
    nonce = request.partition(b"nonce=")[2].partition(b"\0")[0]
    return _LINE.sub(lambda line: b"@%s %s %s" % (nonce, line[2], line[3]), said)


def spoiled_bytes(source: random.Random, said: bytes) -> bytes:
    """The same with some of it changed: bytes, or what its lines say under a checksum that is right."""
    for _ in range(source.choice((1, 1, 1, 2, 5))):
        said = source.choice((_flipped, _cut, _doubled, _inserted, _said_otherwise, _said_otherwise))(source, said)
    return said


def _flipped(source: random.Random, said: bytes) -> bytes:
    place = source.randrange(len(said) or 1)
    return said[:place] + bytes([source.randrange(256)]) + said[place + 1 :]


def _cut(source: random.Random, said: bytes) -> bytes:
    start, end = sorted(source.randrange(len(said) + 1) for _ in range(2))
    return said[:start] + said[end:]


def _doubled(source: random.Random, said: bytes) -> bytes:
    start, end = sorted(source.randrange(len(said) + 1) for _ in range(2))
    return said[:end] + said[start:]


def _inserted(source: random.Random, said: bytes) -> bytes:
    place = source.randrange(len(said) + 1)
    return said[:place] + source.choice((b"\n", b"@", b"\0", b"\xff\xfe", b"}{", b"\r\n")) + said[place:]


def _said_otherwise(source: random.Random, said: bytes) -> bytes:
    found = list(_LINE.finditer(said))
    if not found:
        return _changed(source, said)
    line = source.choice(found)
    text = line[3]
    data = re.search(rb'"data":"([^"]*)"', text)
    if data is not None and source.random() < 0.9:  # what a program has printed
        try:
            printed = _changed(source, base64.b64decode(data[1]))
        except ValueError:
            return _changed(source, said)
        text = text[: data.start(1)] + base64.b64encode(printed) + text[data.end(1) :]
    else:
        text = _changed(source, text)
    return said[: line.start()] + b"@%s %08x %s" % (line[1], zlib.crc32(text), text) + said[line.end() :]


def _changed(source: random.Random, text: bytes) -> bytes:
    """JSON with another number or text in one place."""
    pattern, others = source.choice(((_NUMBER, _NUMBERS), (_TEXT, _TEXTS)))
    found = list(pattern.finditer(text))
    if not found:
        return text + source.choice(_NUMBERS)
    place = source.choice(found)
    return text[: place.start()] + source.choice(others) + text[place.end() :]
