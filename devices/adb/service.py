"""One service of an Android device: a shell command, or file transfer."""

from __future__ import annotations

import time

from devices.adb.limits import AdbLimits
from devices.adb.packets import AdbPacket, AdbPackets
from devices.device_trouble import DeviceTrouble, TroubleKind


class AdbService:
    """A stream of bytes to and from a service that the device has started for us.

    Packets of services before it (their numbers are lower) are passed over: a device may still be sending what it had
    when we hung up.

    Args:
        number: ours for it, from 1, never used before on the connection.
        service: such as b'shell:ls' or b'sync:'.
        max_payload_bytes: the most the device takes in one packet.

    Attributes:
        ended: the device has closed it; what `read` has not given yet is still there.

    Raises:
        ValueError: `service` does not fit a packet; a fault of the SDK.
        DeviceTrouble: LOST, TIMEOUT or PROTOCOL_ERROR; here and in every method.
    """

    def __init__(
        self,
        packets: AdbPackets,
        number: int,
        service: bytes,
        max_payload_bytes: int,
        label: str,
        limits: AdbLimits,
    ) -> None:
        if len(service) + 1 > max_payload_bytes:
            raise ValueError(f"a request of {len(service)} bytes does not fit a packet of {max_payload_bytes}")
        self._packets = packets
        self._number = number
        self._max_payload_bytes = max_payload_bytes
        self._label = label
        self._limits = limits
        self._their_number = 0
        self._unacknowledged = False
        self._received = bytearray()
        self.ended = False
        packets.send(b"OPEN", number, 0, service + b"\0")

    @property
    def has_data(self) -> bool:
        """Whether `read` would give something at once."""
        return bool(self._received)

    def read(self) -> bytes:
        """What has come; b'' when nothing comes within `poll_s`, or no more will (see `ended`).

        Silence is the caller's to judge, except while the device has not even said that it starts the service.

        Raises:
            DeviceTrouble: also BROKEN, the device does not start the service.
        """
        if not self._received and not self.ended:
            self._handle_packet()
            if not self._their_number and not self.ended:
                self._check_silence("does not start what it was asked to")
        data = bytes(self._received)
        self._received.clear()
        return data

    def write(self, data: bytes) -> None:
        """Send all of `data`; returns once the device has taken it, or has ended the service (see `ended`)."""
        for start in range(0, len(data), self._max_payload_bytes):
            self._await_start()
            if self.ended:
                return
            part = data[start : start + self._max_payload_bytes]
            self._unacknowledged = True
            self._packets.send(b"WRTE", self._number, self._their_number, part)
            while self._unacknowledged and not self.ended:
                self._handle_packet()
                self._check_silence("does not take what it is sent")

    def close(self) -> None:
        """Hang up; quiet when the device has ended the service."""
        if not self.ended:
            self.ended = True
            self._packets.send(b"CLSE", self._number, self._their_number)

    def _await_start(self) -> None:
        while not self._their_number and not self.ended:
            self._handle_packet()
            self._check_silence("does not start what it was asked to")

    def _check_silence(self, what: str) -> None:
        if time.monotonic() - self._packets.last_byte_s > self._limits.silence_s:
            message = f"{self._label} {what}: not a byte for {self._limits.silence_s:g} s."
            raise DeviceTrouble(TroubleKind.TIMEOUT, message)

    def _handle_packet(self) -> None:
        packet = self._packets.receive(self._limits.poll_s)
        if packet is None:
            return
        if packet.command == b"CNXN":
            raise DeviceTrouble(TroubleKind.LOST, f"{self._label} has restarted its side of the connection.")
        if packet.argument1 != self._number:
            if packet.command not in (b"OKAY", b"WRTE", b"CLSE") or packet.argument1 > self._number:
                raise self._protocol_error(packet)
        elif packet.command == b"OKAY" and not self._their_number and packet.argument0:
            self._their_number = packet.argument0
        elif packet.command == b"CLSE" and packet.argument0 in (0, self._their_number):
            self._end()
        elif not self._their_number or packet.argument0 != self._their_number:
            raise self._protocol_error(packet)
        elif packet.command == b"OKAY":
            self._unacknowledged = False
        elif packet.command == b"WRTE":
            self._received += packet.payload
            self._packets.send(b"OKAY", self._number, self._their_number)
        else:
            raise self._protocol_error(packet)

    def _end(self) -> None:
        self.ended = True
        if not self._their_number:
            message = f"{self._label} refuses to start a program or a file transfer."
            raise DeviceTrouble(TroubleKind.BROKEN, message, next_step="Restart the device.")
        self._packets.send(b"CLSE", self._number, self._their_number)

    def _protocol_error(self, packet: AdbPacket) -> DeviceTrouble:
        command = packet.command.decode("ascii", "replace")
        return DeviceTrouble(
            TroubleKind.PROTOCOL_ERROR, f"{self._label} sent a packet that belongs to nothing ({command})."
        )
