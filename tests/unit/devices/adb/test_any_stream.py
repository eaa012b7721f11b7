"""Whatever bytes an Android device sends end in a greeting, in a file, or in one typed failure; never in a wait."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.adb.file_transfer import AdbFileTransfer
from halide_autotune.devices.adb.greeting import greet
from halide_autotune.devices.adb.key import AdbKey
from halide_autotune.devices.adb.packets import AdbPacket, AdbPackets
from halide_autotune.devices.adb.service import AdbService
from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from tests.unit.devices.adb.test_packets import PieceWire, encode, packets

AT_ONCE = AdbLimits(connect_s=0.0, silence_s=0.0, allow_s=0.0, poll_s=0.0)
WELCOME = AdbPacket(b"CNXN", 0x01000000, 4096, b"device::ro.product.name=x;\0")


class Signer:
    def Sign(self, token: bytes) -> bytes:
        return token


KEY = AdbKey(b"key", "AA:BB", Signer())
payloads = st.binary(max_size=40) | st.sampled_from([b"device::", b"\x1b[2J::", b"", b"\xff" * 20, b"x" * 4000])
numbers = st.integers(0, 9) | st.sampled_from([4096, 2**20, 2**31, 2**32 - 1])
near_packets = st.builds(
    AdbPacket, st.sampled_from([b"CNXN", b"AUTH", b"OKAY", b"WRTE", b"CLSE"]), numbers, numbers, payloads
)


def reader(data: bytes) -> AdbPackets:
    return AdbPackets(PieceWire([data]), "phone", AT_ONCE)


def check_shown(trouble: DeviceTrouble) -> None:
    assert str(trouble).isprintable() and len(str(trouble)) < 1000


@given(st.lists(packets | near_packets, max_size=5), st.binary(max_size=30))
def test_any_greeting_is_one_or_trouble(said: list[AdbPacket], rest: bytes) -> None:
    connection = reader(b"".join(map(encode, said)) + rest)
    told: list[str] = []
    try:
        state = greet(connection, KEY, told.append)
    except DeviceTrouble as trouble:
        check_shown(trouble)
        return
    assert len(state) <= 32 and state.isprintable() and 4096 <= connection.max_payload_bytes <= 2**20


def test_a_sound_greeting_says_that_android_runs() -> None:
    assert greet(reader(encode(WELCOME)), KEY, lambda message: None) == "device"


def service_says(*parts: bytes) -> bytes:
    started = encode(AdbPacket(b"OKAY", 7, 1, b"")) + encode(AdbPacket(b"OKAY", 7, 1, b""))
    return started + b"".join(encode(AdbPacket(b"WRTE", 7, 1, part)) for part in parts)


heads = st.builds(
    lambda kind, size: struct.pack("<4sI", kind, size),
    st.sampled_from([b"DATA", b"DONE", b"FAIL", b"OKAY", b"\0\0\0\0"]),
    numbers,
)


@given(st.lists(heads | payloads, max_size=6), st.lists(near_packets, max_size=3))
def test_any_file_ends(parts: list[bytes], odd: list[AdbPacket]) -> None:
    connection = reader(service_says(*parts) + b"".join(map(encode, odd)))
    sink = io.BytesIO()
    try:
        AdbFileTransfer(AdbService(connection, 1, b"sync:"), connection).receive("/x", sink)
    except DeviceTrouble as trouble:
        check_shown(trouble)
    assert len(sink.getvalue()) <= sum(map(len, parts)) + sum(len(packet.payload) for packet in odd)


@pytest.mark.parametrize("command", [b"OKAY", b"WRTE", b"CLSE"])
def test_packets_of_earlier_services_come_to_an_end(command: bytes) -> None:
    connection = reader(encode(AdbPacket(command, 7, 1, b"")) * 2000)
    connection.limits = AdbLimits(poll_s=0.0)
    service = AdbService(connection, 2, b"shell:ls")
    with pytest.raises(DeviceTrouble, match="unexpected packet") as caught:
        while True:
            service.read()
    assert caught.value.kind is TroubleKind.PROTOCOL_ERROR


def test_a_device_that_sends_while_it_is_written_to_does_not_fill_the_memory() -> None:
    flood = encode(AdbPacket(b"WRTE", 7, 1, b"x" * 2**20))
    connection = reader(encode(AdbPacket(b"OKAY", 7, 1, b"")) + flood * 6)
    connection.limits = AdbLimits(poll_s=0.0)
    service = AdbService(connection, 1, b"sync:")
    with pytest.raises(DeviceTrouble, match="unexpected packet"):
        service.write(b"data")
