"""The files of a session on a device: sent once, checked at both ends."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devices.agent.reply_fields import ReplyInteger
from devices.agent.session import AgentError, AgentSession, Fields, full_storage, no_room
from devices.device_trouble import DeviceTrouble, TroubleKind
from targets.errors import DeviceError
from targets.process.content_cache import file_sha256

_MOST_BYTES = 4 * 2**30
# What the file system needs beside a file's content.
_SPARE_BYTES = 64 * 1024
# Smaller files cost more in the round trip; larger ones, more in compressing them.
_LEAST_PACKED_BYTES = 16 * 1024
_MOST_PACKED_BYTES = 256 * 2**20
_PACKING_LEVEL = 6
_WORTH_PACKING = 0.9
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class _Content:
    sha256: str
    executable: bool
    size_bytes: int


@dataclass(frozen=True)
class _FileThere:
    name: str
    size_bytes: ReplyInteger
    sha256: str


@dataclass(frozen=True)
class _Look:
    free_bytes: float
    files: tuple[_FileThere, ...]


@contextlib.contextmanager
def _packed(source: Path, content: _Content) -> Iterator[Path | None]:
    """The source compressed as DEFLATE, in a temporary file; None where that is not worth it.

    The kernels of a batch are much alike: it has a fourth to a tenth of their size.
    """
    if not _LEAST_PACKED_BYTES <= content.size_bytes <= _MOST_PACKED_BYTES:
        yield None
        return
    packer = zlib.compressobj(_PACKING_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    try:
        with source.open("rb") as file, tempfile.NamedTemporaryFile(prefix="sdk-push-") as packed:
            while block := file.read(_BLOCK_BYTES):
                packed.write(packer.compress(block))
            packed.write(packer.flush())
            packed.flush()
            worth_it = packed.tell() < _WORTH_PACKING * content.size_bytes
            yield Path(packed.name) if worth_it else None
    except OSError as error:
        raise DeviceError(f"{source} cannot be compressed: {error.strerror or error}.") from error


class SessionFiles:
    """Pushes, pulls and removes; remembers what the device has been sent.

    Names have been checked by who calls.

    Args:
        name: of the session, hexadecimal.
        lease: the fields that say who holds the device's lease.
    """

    def __init__(self, session: AgentSession, device: str, name: str, lease: Fields) -> None:
        self._session = session
        self._device = device
        self._folder = f"s-{name}"
        self._fields = [("session", name), *lease]
        self._sent: dict[str, _Content] = {}

    def push(self, source: Path, name: str) -> None:
        """Send a file, unless the device still has the same content under that name.

        Raises:
            DeviceError: the source cannot be read.
            DeviceTrouble: FULL before anything is sent when there is no room; PROTOCOL_ERROR when it twice did not
                arrive as it was sent; else what the connection gives.
        """
        content = _read_content(source)
        free_bytes, there = self._look(name)
        if there == (content.size_bytes, content.sha256) and self._sent.get(name) == content:
            return
        self._sent.pop(name, None)
        if free_bytes < content.size_bytes + _SPARE_BYTES:
            raise no_room(self._device, content.size_bytes, free_bytes)
        try:
            self._send(source, name, content)
        except AgentError as error:
            if error.event.kind != "checksum":
                raise
            if full := full_storage(self._device, error, content.size_bytes):
                raise full from error
            self._send_again(source, name, content)
        self._sent[name] = content

    def pull(self, name: str, destination: Path) -> None:
        """Fetch a file; `destination` appears whole or not at all.

        Raises:
            DeviceError: the file is not there, is larger than 4 GiB, or `destination` cannot be written.
            DeviceTrouble: PROTOCOL_ERROR when it twice did not arrive as it was sent; else what the connection gives.
        """
        _, there = self._look(name)
        if there is None:
            raise DeviceError(f"{name} is not on {self._device}.")
        size_bytes, sha256 = there
        if size_bytes > _MOST_BYTES:
            raise DeviceError(f"{name} on {self._device} has {size_bytes} bytes; at most {_MOST_BYTES} are fetched.")
        beside = destination.with_name(f".{secrets.token_hex(8)}.part")
        try:
            for _ in range(2):
                self._session.get(f"{self._folder}/{name}", beside)
                if beside.stat().st_size == size_bytes and file_sha256(beside) == sha256:
                    os.replace(beside, destination)
                    return
        except OSError as error:
            raise DeviceError(f"{destination} cannot be written: {error.strerror or error}.") from error
        finally:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
        raise self._protocol_error(name)

    def remove(self, name: str) -> None:
        """Delete a file; quiet when it is not there."""
        self._sent.pop(name, None)
        self._session.ask("remove", [*self._fields, ("name", name)])

    def forget(self) -> None:
        """Nothing that was sent is taken to be there any more."""
        self._sent.clear()

    def _look(self, name: str) -> tuple[float, tuple[int, str] | None]:
        """Free bytes, and the size and SHA-256 of a file where there is one."""
        look = self._session.ask("hash", [*self._fields, ("name", name)]).record(_Look)
        there = next(((file.size_bytes, file.sha256) for file in look.files if file.name == name), None)
        return look.free_bytes, there

    def _send(self, source: Path, name: str, content: _Content) -> None:
        part = f".part-{secrets.token_hex(8)}"
        accept = [
            *self._fields,
            ("part", part),
            ("name", name),
            ("sha256", content.sha256),
            ("executable", str(int(content.executable))),
        ]
        with _packed(source, content) as packed:
            if packed is not None:
                accept.append(("packed_from", str(content.size_bytes)))
            try:
                self._session.put(packed or source, f"{self._folder}/{part}")
            except DeviceTrouble as trouble:
                if trouble.kind is TroubleKind.FULL:
                    with contextlib.suppress(DeviceError):
                        self._session.ask("accept", accept)  # it deletes what is cut short
                raise
        self._session.ask("accept", accept)

    def _send_again(self, source: Path, name: str, content: _Content) -> None:
        try:
            self._send(source, name, content)
        except AgentError as error:
            if error.event.kind != "checksum":
                raise
            raise self._protocol_error(name) from error

    def _protocol_error(self, name: str) -> DeviceTrouble:
        self._session.close()
        return DeviceTrouble(
            TroubleKind.PROTOCOL_ERROR,
            f"{name} was damaged twice on the way between here and {self._device}.",
            next_step="Check the cable, the network and the storage of the device.",
        )


def _read_content(source: Path) -> _Content:
    try:
        status = source.stat()
        sha256 = file_sha256(source)
    except OSError as error:
        raise DeviceError(f"{source} cannot be read: {error.strerror or error}.") from error
    return _Content(sha256, bool(status.st_mode & stat.S_IXUSR), status.st_size)
