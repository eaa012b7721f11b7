from __future__ import annotations

import struct
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.adb.packets import COMMANDS, MAX_PAYLOAD_BYTES, AdbPacket, AdbPackets
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind

HEADER_BYTES = 24


class PieceWire:
    """Gives what it was filled with, piece by piece; b'' where a piece is empty, and at the end."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = deque(pieces)
        self.sent = b""

    def read(self, size_bytes: int, wait_s: float) -> bytes:
        del wait_s
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        if len(piece) > size_bytes:
            self._pieces.appendleft(piece[size_bytes:])
        return piece[:size_bytes]

    def write(self, header: bytes, payload: bytes) -> None:
        self.sent += header + payload

    def close(self) -> None:
        pass


def encode(packet: AdbPacket) -> bytes:
    """A packet as ADB's description has it."""
    command = int.from_bytes(packet.command, "little")
    numbers = (packet.argument0, packet.argument1, len(packet.payload), sum(packet.payload), command ^ 0xFFFFFFFF)
    return struct.pack("<6I", command, *numbers) + packet.payload


numbers = st.integers(0, 2**32 - 1)
packets = st.builds(AdbPacket, st.sampled_from(sorted(COMMANDS)), numbers, numbers, st.binary(max_size=200))


@given(st.lists(packets, max_size=5), st.data())
def test_packets_are_whole_however_they_are_cut(expected: list[AdbPacket], data: st.DataObject) -> None:
    stream = b"".join(encode(packet) for packet in expected)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    reader = AdbPackets(PieceWire(pieces), "it")
    found = []
    for _ in range(2 * len(pieces) + 2 * len(expected) + 1):
        if (packet := reader.receive(0)) is not None:
            found.append(packet)
    assert found == expected


@given(st.binary(min_size=HEADER_BYTES, max_size=400))
def test_other_bytes_are_garbled_and_nothing_else(data: bytes) -> None:
    reader = AdbPackets(PieceWire([data]), "it")
    with pytest.raises(DeviceTrouble) as caught:
        for _ in range(3):
            reader.receive(0)
    assert caught.value.kind is TroubleKind.PROTOCOL_ERROR


@given(packets.filter(lambda packet: packet.command != b"STLS" and bool(packet.payload)), st.integers(1, 255))
def test_a_changed_payload_is_protocol_error(packet: AdbPacket, change: int) -> None:
    changed = bytearray(encode(packet))
    changed[-1] = changed[-1] ^ change
    with pytest.raises(DeviceTrouble, match="checksum"):
        AdbPackets(PieceWire([bytes(changed)]), "it").receive(0)


def test_every_byte_of_the_checksum_counts() -> None:
    changed = encode(AdbPacket(b"WRTE", 1, 1, b"\x01\x02")).replace(b"\x01\x02", b"\x81\x82")
    with pytest.raises(DeviceTrouble, match="checksum"):  # the sum is 256 more
        AdbPackets(PieceWire([changed]), "it").receive(0)


def test_a_packet_that_would_fill_the_memory_is_protocol_error() -> None:
    header = bytearray(encode(AdbPacket(b"WRTE", 1, 1, b"")))
    header[12:16] = (MAX_PAYLOAD_BYTES + 1).to_bytes(4, "little")
    with pytest.raises(DeviceTrouble, match=str(MAX_PAYLOAD_BYTES + 1)):
        AdbPackets(PieceWire([bytes(header)]), "it").receive(0)


@given(packets.filter(lambda packet: packet.command != b"STLS"))
def test_what_is_sent_is_as_described(packet: AdbPacket) -> None:
    wire = PieceWire([])
    AdbPackets(wire, "it").send(packet.command, packet.argument0, packet.argument1, packet.payload)
    assert wire.sent == encode(packet)
