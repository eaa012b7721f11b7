"""One service of an Android device: a shell command, or file transfer."""

from __future__ import annotations

from halide_autotune.devices.adb.packets import AdbPacket, AdbPackets
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind

# A device may send on while we write, and what earlier services had left; more than this, and it never ends.
_MOST_UNREAD_BYTES = 4 * 2**20
_MOST_STALE_PACKETS = 1000


class AdbService:
    """A stream of bytes to and from a service that the device starts for us.

    Packets of earlier services (which have lower numbers) are skipped: a device may still send what it had when we
    closed them.

    Args:
        number: our number for the service, from 1, never used before on the connection.
        name: such as b'shell:ls' or b'sync:'.

    Attributes:
        ended: the device has closed the service; data that `read` has not returned yet is still there.

    Raises:
        ValueError: `name` does not fit a packet; a bug of the SDK.
        DeviceTrouble: LOST, TIMEOUT or PROTOCOL_ERROR; here and in every method.
    """

    def __init__(self, packets: AdbPackets, number: int, name: bytes) -> None:
        if len(name) + 1 > packets.max_payload_bytes:
            raise ValueError(f"a request of {len(name)} bytes does not fit a packet of {packets.max_payload_bytes}")
        self._packets = packets
        self._number = number
        self._their_number = 0
        self._unacknowledged = False
        self._received = bytearray()
        self._stale_packets = 0
        self.ended = False
        packets.send(b"OPEN", number, 0, name + b"\0")

    @property
    def has_data(self) -> bool:
        """Whether `read` would return data at once."""
        return bool(self._received)

    def read(self) -> bytes:
        """Return what has come; b'' when nothing comes within `poll_s`, or no more will (see `ended`).

        The caller judges silence, except while the device has not even started the service.

        Raises:
            DeviceTrouble: also BROKEN, the device does not start the service.
        """
        if not self._received and not self.ended:
            self._handle_packet()
            if not self._their_number and not self.ended:
                self._check_start()
        data = bytes(self._received)
        self._received.clear()
        return data

    def write(self, data: bytes) -> None:
        """Send all of `data`; return once the device has taken it, or has ended the service (see `ended`)."""
        for start in range(0, len(data), self._packets.max_payload_bytes):
            while not self._their_number and not self.ended:
                self._handle_packet()
                self._check_start()
            if self.ended:
                return
            part = data[start : start + self._packets.max_payload_bytes]
            self._unacknowledged = True
            self._packets.send(b"WRTE", self._number, self._their_number, part)
            while self._unacknowledged and not self.ended:
                self._handle_packet()
                self._packets.check_silence("does not take the data")

    def close(self) -> None:
        """Close the service unless the device has ended it."""
        if not self.ended:
            self.ended = True
            self._packets.send(b"CLSE", self._number, self._their_number)

    def _check_start(self) -> None:
        self._packets.check_silence("does not start a program or a file transfer")

    def _handle_packet(self) -> None:
        packet = self._packets.receive(self._packets.limits.poll_s)
        if packet is None:
            return
        if packet.command == b"CNXN":
            message = f"{self._packets.label} has restarted its side of the connection."
            raise DeviceTrouble(TroubleKind.LOST, message)
        if packet.argument1 != self._number:
            self._stale_packets += 1
            is_stale = packet.command in (b"OKAY", b"WRTE", b"CLSE") and packet.argument1 < self._number
            if not is_stale or self._stale_packets > _MOST_STALE_PACKETS:
                raise self._protocol_error(packet)
        elif packet.command == b"OKAY" and not self._their_number and packet.argument0:
            self._their_number = packet.argument0
        elif packet.command == b"CLSE" and packet.argument0 in (0, self._their_number):
            self._end()
        elif not self._their_number or packet.argument0 != self._their_number:
            raise self._protocol_error(packet)
        elif packet.command == b"OKAY":
            self._unacknowledged = False
        elif packet.command == b"WRTE" and len(self._received) < _MOST_UNREAD_BYTES:
            self._received += packet.payload
            self._packets.send(b"OKAY", self._number, self._their_number)
        else:
            raise self._protocol_error(packet)

    def _end(self) -> None:
        self.ended = True
        if not self._their_number:
            message = f"{self._packets.label} refuses to start a program or a file transfer."
            raise DeviceTrouble(TroubleKind.BROKEN, message, next_step="Restart the device.")
        self._packets.send(b"CLSE", self._number, self._their_number)

    def _protocol_error(self, packet: AdbPacket) -> DeviceTrouble:
        message = f"{self._packets.label} sent an unexpected packet ({packet.command.decode('ascii', 'replace')})."
        return DeviceTrouble(TroubleKind.PROTOCOL_ERROR, message)
