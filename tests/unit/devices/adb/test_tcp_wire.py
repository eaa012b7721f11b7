from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from halide_autotune.devices.adb.tcp_wire import AdbTcpWire
from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind

# Both ends are in this process: what holds one up may hold the other up as well.
LIMITS = AdbLimits(connect_s=120.0, silence_s=120.0)


@pytest.fixture
def ends() -> Iterator[tuple[AdbTcpWire, socket.socket]]:
    """A wire and the device's end, on a path of small packets and buffers."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        wire = AdbTcpWire("127.0.0.1", listener.getsockname()[1], "it", LIMITS)
        device, _ = listener.accept()
        with device:
            yield wire, device
        wire.close()


def read_exactly(device: socket.socket, size_bytes: int) -> bytes:
    data = bytearray()
    while len(data) < size_bytes:
        data += device.recv(min(4096, size_bytes - len(data)))
    return bytes(data)


def test_a_packet_bigger_than_the_buffers_is_sent_whole(ends: tuple[AdbTcpWire, socket.socket]) -> None:
    wire, device = ends
    payload = os.urandom(8_000_000)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(read_exactly(device, 24 + len(payload))))
    reader.start()
    wire.write(b"h" * 24, payload)
    reader.join()
    assert heard == [b"h" * 24 + payload]


def test_a_device_that_takes_nothing_is_silent(ends: tuple[AdbTcpWire, socket.socket]) -> None:
    ends[0]._silence_s = 0.5
    with pytest.raises(DeviceTrouble, match=r"it has taken no data for 0\.5 s") as caught:
        ends[0].write(b"", bytes(100_000_000))
    assert caught.value.kind is TroubleKind.TIMEOUT


def test_nothing_to_read_is_no_error(ends: tuple[AdbTcpWire, socket.socket]) -> None:
    wire, device = ends
    assert wire.read(10, 0.01) == b""
    device.sendall(b"abc")
    assert wire.read(2, 5) == b"ab"
    assert wire.read(2, 5) == b"c"


def test_a_closed_connection_is_lost_at_once(ends: tuple[AdbTcpWire, socket.socket]) -> None:
    wire, device = ends
    device.close()
    with pytest.raises(DeviceTrouble, match="it closed the connection") as caught:
        wire.read(24, 60)
    assert caught.value.kind is TroubleKind.LOST


def test_a_reset_connection_is_lost(ends: tuple[AdbTcpWire, socket.socket]) -> None:
    wire, device = ends
    wire.write(b"unread", b"")
    device.close()
    with pytest.raises(DeviceTrouble) as caught:
        for _ in range(1000):
            wire.write(b"", bytes(100_000))
    assert caught.value.kind is TroubleKind.LOST


def test_small_packets_are_not_held_back(ends: tuple[AdbTcpWire, socket.socket]) -> None:
    assert ends[0]._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_name_that_does_not_exist() -> None:
    for name in ("no-such-device.invalid", "x" * 300):
        with pytest.raises(DeviceTrouble, match="no address is known for the name") as caught:
            AdbTcpWire(name, 5555, "it", LIMITS)
        assert caught.value.kind is TroubleKind.UNREACHABLE
