"""The files of a session on a device: sent once, checked at both ends."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.devices.agent.protocol import FileBytes, FreeBytes
from halide_autotune.devices.agent.session import AgentError, AgentSession, Fields, full_storage, no_room
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.targets.errors import DeviceError, os_error_as
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.values.checks import matching

_MOST_BYTES = 4 * 2**30
# What the file system needs beside a file's content.
_SPARE_BYTES = 64 * 1024
# Smaller files cost more in the round trip; larger ones, more in compressing them.
_LEAST_PACKED_BYTES = 16 * 1024
_MOST_PACKED_BYTES = 256 * 2**20
_PACKING_LEVEL = 6
_WORTH_PACKING = 0.9
_BLOCK_BYTES = 2**20
# As over weak radio.
_SLOWEST_BYTES_PER_S = 100_000
# Any lease that was just renewed lasts longer.
_BRIEF_TRANSFER_S = 30.0


@dataclass(frozen=True)
class _File:
    size_bytes: FileBytes
    sha256: Annotated[str, matching("[0-9a-f]{64}", "64 hexadecimal digits")]


@dataclass(frozen=True)
class _Content:
    file: _File
    executable: bool


@dataclass(frozen=True)
class _Look:
    free_bytes: FreeBytes
    file: _File | None


class SessionFiles:
    """Pushes, pulls and removes files, and remembers what the device has. The caller has checked the names.

    Args:
        name: of the session, hexadecimal.
        lease: gives the fields that say who has the device's lease, and that it is to last so many seconds at least.
    """

    def __init__(self, session: AgentSession, device: str, name: str, lease: Callable[[float], Fields]) -> None:
        self._session = session
        self._device = device
        self._folder = f"s-{name}"
        self._name = name
        self._lease = lease
        self._sent: dict[str, _Content] = {}

    def push(self, source: Path, name: str) -> None:
        """Send a file, unless the device still has the same content under that name.

        Raises:
            DeviceError: the source cannot be read.
            DeviceTrouble: FULL, before anything is sent; PROTOCOL_ERROR when the file arrived damaged twice; else
                that of the connection.
        """
        content = _read_content(source)
        look = self._look(name)
        if look.file == content.file and self._sent.get(name) == content:
            return
        self._sent.pop(name, None)
        if look.free_bytes < content.file.size_bytes + _SPARE_BYTES:
            raise no_room(self._device, content.file.size_bytes, look.free_bytes)
        for is_last in (False, True):
            try:
                self._send(source, name, content)
                break
            except AgentError as error:
                if error.event.kind != "checksum":
                    raise
                if full := full_storage(self._device, error, content.file.size_bytes):
                    raise full from error
                if is_last:
                    raise self._damaged(name) from error
        self._sent[name] = content

    def pull(self, name: str, destination: Path) -> None:
        """Fetch a file; `destination` appears whole or not at all.

        Raises:
            DeviceError: the file does not exist, is larger than 4 GiB, or `destination` cannot be written.
            DeviceTrouble: PROTOCOL_ERROR when the file arrived damaged twice; else that of the connection.
        """
        there = self._look(name).file
        if there is None:
            raise DeviceError(f"{name} is not on {self._device}.")
        if there.size_bytes > _MOST_BYTES:
            raise DeviceError(
                f"{name} on {self._device} has {there.size_bytes} bytes; at most {_MOST_BYTES} can be fetched."
            )
        beside = destination.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with os_error_as(DeviceError, f"{destination} cannot be written"):
                for _ in range(2):
                    self._hold_lease(name, there.size_bytes)
                    self._session.get(f"{self._folder}/{name}", beside)
                    if there == _File(beside.stat().st_size, file_sha256(beside)):
                        os.replace(beside, destination)
                        return
        finally:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
        raise self._damaged(name)

    def remove(self, name: str) -> None:
        """Delete a file if it exists."""
        self._sent.pop(name, None)
        self._session.ask("remove", [*self._fields(), ("name", name)])

    def forget(self) -> None:
        """Assume that the device has none of the files any more."""
        self._sent.clear()

    def _fields(self, lease_s: float = 0.0) -> Fields:
        return [("session", self._name), *self._lease(lease_s)]

    def _look(self, name: str, lease_s: float = 0.0) -> _Look:
        """Return the device's free bytes, and the file if it exists."""
        return self._session.ask_for(_Look, "hash", [*self._fields(lease_s), ("name", name)])

    def _hold_lease(self, name: str, size_bytes: int) -> None:
        """Have the lease last for a slow transfer, during which nothing renews it."""
        transfer_s = size_bytes / _SLOWEST_BYTES_PER_S
        if transfer_s > _BRIEF_TRANSFER_S:
            self._look(name, transfer_s)

    def _send(self, source: Path, name: str, content: _Content) -> None:
        self._hold_lease(name, content.file.size_bytes)
        part = f".part-{secrets.token_hex(8)}"
        accept = [
            *self._fields(),
            ("part", part),
            ("name", name),
            ("sha256", content.file.sha256),
            ("executable", str(int(content.executable))),
        ]
        with _packed(source, content) as packed:
            if packed is not None:
                accept.append(("packed_from", str(content.file.size_bytes)))
            try:
                self._session.put(packed or source, f"{self._folder}/{part}")
            except DeviceTrouble as trouble:
                if trouble.kind is TroubleKind.FULL:
                    with contextlib.suppress(DeviceError):
                        self._session.ask("accept", accept)  # deletes what was cut short
                raise
        self._session.ask("accept", accept)

    def _damaged(self, name: str) -> DeviceTrouble:
        self._session.close()
        return DeviceTrouble(
            TroubleKind.PROTOCOL_ERROR,
            f"{name} was damaged twice on the way between here and {self._device}.",
            next_step="Check the cable, the network and the device's storage.",
        )


@contextlib.contextmanager
def _packed(source: Path, content: _Content) -> Iterator[Path | None]:
    """Yield the source compressed with DEFLATE, in a temporary file; None where that is not worth it.

    The kernels of a batch are much alike: compressed, they have a fourth to a tenth of their size.
    """
    if not _LEAST_PACKED_BYTES <= content.file.size_bytes <= _MOST_PACKED_BYTES:
        yield None
        return
    packer = zlib.compressobj(_PACKING_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    with (
        os_error_as(DeviceError, f"{source} cannot be compressed"),
        source.open("rb") as file,
        scratch_folder("push") as folder,
        (folder / "packed").open("wb") as packed,
    ):
        while block := file.read(_BLOCK_BYTES):
            packed.write(packer.compress(block))
        packed.write(packer.flush())
        packed.flush()
        worth_it = packed.tell() < _WORTH_PACKING * content.file.size_bytes
        yield Path(packed.name) if worth_it else None


def _read_content(source: Path) -> _Content:
    with os_error_as(DeviceError, f"{source} cannot be read"):
        status = source.stat()
        return _Content(_File(status.st_size, file_sha256(source)), bool(status.st_mode & stat.S_IXUSR))
