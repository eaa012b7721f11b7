"""Files to and from an Android device: the sync service's SEND and RECV."""

from __future__ import annotations

import struct
from typing import BinaryIO

from halide_autotune.devices.adb.packets import AdbPackets
from halide_autotune.devices.adb.service import AdbService
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind, transfer_failure

_MAX_FILE_BYTES = 4 * 2**30
_HEAD = struct.Struct("<4sI")
# The most that adbd takes in one DATA message.
_MAX_DATA_BYTES = 64 * 1024
# One packet must get through before a slow link counts as silent; larger ones are no faster.
_MAX_PACKET_BYTES = 256 * 1024
_MAX_REASON_BYTES = 64 * 1024
# A regular file. adbd gives the owner's rights to everybody; the agent takes them away again.
_MODE = 0o100700


class AdbFileTransfer:
    """One file over one sync service.

    A complaint of the device may come while a file is still being sent, so every message is followed by a look for it.
    """

    def __init__(self, service: AdbService, packets: AdbPackets) -> None:
        self._service = service
        self._packets = packets
        self._packet_bytes = min(packets.max_payload_bytes, _MAX_PACKET_BYTES)
        self._received = bytearray()

    def send(self, source: BinaryIO, path: str, modified_s: int) -> None:
        """Copy all of `source` to `path`; adbd makes the folders above it.

        Raises:
            DeviceTrouble: FULL; BROKEN with the device's reason; LOST, TIMEOUT or PROTOCOL_ERROR.
            OSError: `source` cannot be read.
        """
        target = f"{path},{_MODE}".encode()
        pending = bytearray(_HEAD.pack(b"SEND", len(target)) + target)
        data_bytes = min(_MAX_DATA_BYTES, self._packet_bytes) - _HEAD.size
        while data := source.read(data_bytes):
            if len(pending) + _HEAD.size + len(data) > self._packet_bytes:
                self._write_more(pending, path)
            pending += _HEAD.pack(b"DATA", len(data)) + data
        if len(pending) + _HEAD.size > self._packet_bytes:
            self._write_more(pending, path)
        pending += _HEAD.pack(b"DONE", modified_s & 0xFFFFFFFF)
        self._service.write(bytes(pending))
        kind, size_bytes = self._head()
        if kind != b"OKAY":
            raise self._failure(kind, size_bytes, path)

    def receive(self, path: str, sink: BinaryIO) -> None:
        """Copy `path` into `sink`.

        Raises:
            DeviceTrouble: BROKEN with the device's reason, or for more than 4 GiB; LOST, TIMEOUT or PROTOCOL_ERROR.
            OSError: `sink` cannot be written.
        """
        target = path.encode()
        self._service.write(_HEAD.pack(b"RECV", len(target)) + target)
        file_bytes = 0
        while True:
            kind, size_bytes = self._head()
            if kind == b"DONE":
                return
            if kind != b"DATA":
                raise self._failure(kind, size_bytes, path)
            if size_bytes > _MAX_DATA_BYTES:
                raise self._protocol_error()
            file_bytes += size_bytes
            if file_bytes > _MAX_FILE_BYTES:
                message = f"{path} on {self._packets.label} is larger than {_MAX_FILE_BYTES // 2**30} GiB."
                raise DeviceTrouble(TroubleKind.BROKEN, message)
            sink.write(self._take(size_bytes))

    def _write_more(self, pending: bytearray, path: str) -> None:
        self._service.write(bytes(pending))
        pending.clear()
        if self._service.has_data or self._service.ended:
            raise self._failure(*self._head(), path)

    def _head(self) -> tuple[bytes, int]:
        kind, size_bytes = _HEAD.unpack(self._take(_HEAD.size))
        return kind, size_bytes

    def _take(self, size_bytes: int) -> bytes:
        while len(self._received) < size_bytes:
            data = self._service.read()
            self._received += data
            if not data and self._service.ended:
                raise DeviceTrouble(TroubleKind.LOST, f"{self._packets.label} broke off a file transfer.")
            if not data:
                self._packets.check_silence("stopped in a file transfer")
        taken = bytes(self._received[:size_bytes])
        del self._received[:size_bytes]
        return taken

    def _failure(self, kind: bytes, size_bytes: int, path: str) -> DeviceTrouble:
        """Translate the device's FAIL; anything else is a PROTOCOL_ERROR."""
        if kind != b"FAIL" or size_bytes > _MAX_REASON_BYTES:
            return self._protocol_error()
        return transfer_failure(self._packets.label, path, self._take(size_bytes))

    def _protocol_error(self) -> DeviceTrouble:
        message = f"{self._packets.label} sent an unexpected answer in a file transfer."
        return DeviceTrouble(TroubleKind.PROTOCOL_ERROR, message)
