"""ADB packets over a wire."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

from halide_autotune.devices.adb.wire import AdbLimits, AdbWire
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind

# The largest payload that we announce to a device, and so the largest it may send.
MAX_PAYLOAD_BYTES = 1024 * 1024
COMMANDS = frozenset((b"AUTH", b"CLSE", b"CNXN", b"OKAY", b"OPEN", b"STLS", b"SYNC", b"WRTE"))
_HEADER = struct.Struct("<4s5I")
_ALL_BITS = 0xFFFFFFFF


@dataclass(frozen=True)
class AdbPacket:
    """One packet of a device; the meaning of its two arguments depends on the command."""

    command: bytes
    argument0: int
    argument1: int
    payload: bytes


class AdbPackets:
    """Sends and receives the packets of one connection; half a packet stays until the rest comes.

    Args:
        label: the device in messages.

    Attributes:
        max_payload_bytes: the most the device takes in one packet.
        last_byte_s: when the wire last took or gave a byte, on the monotonic clock.
    """

    def __init__(self, wire: AdbWire, label: str, limits: AdbLimits | None = None) -> None:
        self.label = label
        self.limits = limits or AdbLimits()
        self.max_payload_bytes = MAX_PAYLOAD_BYTES
        self._wire = wire
        self._header = bytearray()
        self._payload = bytearray()
        self.last_byte_s = time.monotonic()

    def send(self, command: bytes, argument0: int, argument1: int, payload: bytes = b"") -> None:
        """Send one packet.

        Raises:
            DeviceTrouble: LOST or TIMEOUT.
        """
        from adb_shell.adb_message import AdbMessage

        self._wire.write(AdbMessage(command, argument0, argument1, payload).pack(), payload)
        self.last_byte_s = time.monotonic()

    def receive(self, wait_s: float) -> AdbPacket | None:
        """Return the next packet; None when it is not complete within `wait_s`.

        Raises:
            DeviceTrouble: LOST; PROTOCOL_ERROR, this is not a packet.
        """
        deadline_s = time.monotonic() + wait_s
        while not self._fill(self._header, _HEADER.size, deadline_s):
            if time.monotonic() >= deadline_s:
                return None
        command, argument0, argument1, size_bytes, checksum, magic = _HEADER.unpack(self._header)
        if command not in COMMANDS or magic != int.from_bytes(command, "little") ^ _ALL_BITS:
            raise self._protocol_error("bytes that are not an ADB packet")
        if size_bytes > MAX_PAYLOAD_BYTES:
            raise self._protocol_error(f"a packet of {size_bytes} bytes, more than the agreed {MAX_PAYLOAD_BYTES}")
        while not self._fill(self._payload, size_bytes, deadline_s):
            if time.monotonic() >= deadline_s:
                return None
        payload = bytes(self._payload)
        self._header.clear()
        self._payload.clear()
        # STLS belongs to a later version of the protocol, which has no checksums.
        if payload and command != b"STLS" and sum(payload) & _ALL_BITS != checksum:
            raise self._protocol_error("a packet with a wrong checksum")
        return AdbPacket(command, argument0, argument1, payload)

    def check_silence(self, what: str) -> None:
        """Raise TIMEOUT when no byte has gone either way for too long.

        Args:
            what: what the device fails to do, for the message.
        """
        if time.monotonic() - self.last_byte_s > self.limits.silence_s:
            message = f"{self.label} {what}: not a byte for {self.limits.silence_s:g} s."
            raise DeviceTrouble(TroubleKind.TIMEOUT, message)

    def close(self) -> None:
        """Close the wire."""
        self._wire.close()

    def _fill(self, part: bytearray, size_bytes: int, deadline_s: float) -> bool:
        missing_bytes = size_bytes - len(part)
        if missing_bytes and (data := self._wire.read(missing_bytes, deadline_s - time.monotonic())):
            self.last_byte_s = time.monotonic()
            part += data
        return len(part) == size_bytes

    def _protocol_error(self, what: str) -> DeviceTrouble:
        return DeviceTrouble(
            TroubleKind.PROTOCOL_ERROR,
            f"{self.label} sent {what}.",
            next_step="Check that the port is the device's ADB port, and its cable or network.",
        )
