"""Devices that do not keep to the protocol: scripted, because no real device and no emulator of one does it."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from halide_autotune.devices.adb import file_transfer as adb_file_transfer
from halide_autotune.devices.adb import packets as adb_packets
from halide_autotune.devices.adb import service as adb_service
from halide_autotune.devices.adb.link import AdbLink
from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from tests.adb_device.link_to import link_to
from tests.process_state import await_condition

# Both ends are in this process: what holds one up may hold the other up as well.
LIMITS = AdbLimits(connect_s=120.0, silence_s=120.0, allow_s=120.0, poll_s=0.05)


class Peer:
    """The device's end of one connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.settimeout(120)

    def send(self, command: bytes, argument0: int, argument1: int, payload: bytes = b"") -> None:
        self._socket.sendall(self.encode(command, argument0, argument1, payload))

    def encode(self, command: bytes, argument0: int, argument1: int, payload: bytes = b"") -> bytes:
        magic = int.from_bytes(command, "little") ^ 0xFFFFFFFF
        head = struct.pack("<4s5I", command, argument0, argument1, len(payload), sum(payload), magic)
        return head + payload

    def send_raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def expect(self, command: bytes) -> tuple[int, int, bytes]:
        found, argument0, argument1, size_bytes, _, _ = struct.unpack("<4s5I", self._read(24))
        payload = self._read(size_bytes)
        assert found == command, found
        return argument0, argument1, payload

    def welcome(self) -> None:
        self.expect(b"CNXN")
        self.send(b"CNXN", 0x01000000, 4096, b"device::ro.product.name=x;\0")

    def start_service(self) -> int:
        number, _, _ = self.expect(b"OPEN")
        self.send(b"OKAY", 7, number)
        return number

    def take_request(self, number: int) -> None:
        self.expect(b"WRTE")
        self.send(b"OKAY", 7, number)

    def _read(self, size_bytes: int) -> bytes:
        data = bytearray()
        while len(data) < size_bytes:
            piece = self._socket.recv(size_bytes - len(data))
            if not piece:
                raise ConnectionError
            data += piece
        return bytes(data)


Play = Callable[[Callable[[Peer], None]], AdbLink]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture
def play(keys: Path) -> Iterator[Play]:
    """Starts a device that does as it is told, and gives a link to it."""
    server = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []
    links: list[AdbLink] = []

    def begin(act: Callable[[Peer], None]) -> AdbLink:
        def serve() -> None:
            connected, _ = server.accept()
            with connected:
                try:
                    act(Peer(connected))
                    connected.recv(1)  # until the link lets go
                except OSError:
                    pass

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        links.append(link_to(server.getsockname()[1], keys, limits=LIMITS))
        return links[-1]

    yield begin
    for link in links:
        link.close()
    for thread in threads:
        thread.join()
    server.close()


def fails(kind: TroubleKind, action: Callable[[], object], text: str = "") -> None:
    with pytest.raises(DeviceTrouble, match=text) as caught:
        action()
    assert caught.value.kind is kind, caught.value


def read_all(link: AdbLink) -> list[bytes]:
    return list(link.stream(["true"]))


@pytest.mark.parametrize("token", [b"", b"x" * 19, b"x" * 21, b"x" * 256])
def test_nothing_but_a_token_is_signed(play: Play, token: bytes) -> None:
    def act(peer: Peer) -> None:
        peer.expect(b"CNXN")
        peer.send(b"AUTH", 1, 0, token)

    fails(TroubleKind.PROTOCOL_ERROR, play(act).connect, "proof of identity")


def test_a_payload_limit_that_no_device_has(play: Play) -> None:
    def act(peer: Peer) -> None:
        peer.expect(b"CNXN")
        peer.send(b"CNXN", 0x01000000, 16, b"device::\0")

    fails(TroubleKind.PROTOCOL_ERROR, play(act).connect, "16 bytes")


def test_data_without_end_before_the_greeting(play: Play) -> None:
    def act(peer: Peer) -> None:
        peer.expect(b"CNXN")
        while True:
            peer.send(b"WRTE", 1, 1, b"x" * 100)

    fails(TroubleKind.PROTOCOL_ERROR, play(act).connect, "before it was asked")


def test_packets_left_over_from_before_are_passed_over(play: Play) -> None:
    def act(peer: Peer) -> None:
        peer.expect(b"CNXN")
        peer.send(b"WRTE", 3, 9, b"old")
        peer.send(b"CLSE", 3, 9)
        peer.send(b"CNXN", 0x01000000, 4096, b"device::\0")
        number = peer.start_service()
        peer.send(b"WRTE", 7, number, b"new")
        peer.expect(b"OKAY")
        peer.send(b"CLSE", 7, number)

    link = play(act)
    link.connect()
    assert b"".join(read_all(link)) == b"new"


def test_a_service_that_is_refused(play: Play) -> None:
    def act(peer: Peer) -> None:
        peer.welcome()
        number, _, _ = peer.expect(b"OPEN")
        peer.send(b"CLSE", 0, number)

    link = play(act)
    link.connect()
    fails(TroubleKind.BROKEN, lambda: read_all(link), "refuses to start")


def test_packets_of_a_service_that_we_left_are_passed_over(play: Play) -> None:
    def act(peer: Peer) -> None:
        peer.welcome()
        first = peer.start_service()
        peer.expect(b"CLSE")
        second, _, _ = peer.expect(b"OPEN")
        peer.send(b"WRTE", 7, first, b"late")
        peer.send(b"CLSE", 7, first)
        peer.send(b"OKAY", 8, second)
        peer.send(b"WRTE", 8, second, b"right")
        peer.expect(b"OKAY")
        peer.send(b"CLSE", 8, second)

    link = play(act)
    link.connect()
    stream = link.stream(["first"])
    for _ in range(3):
        next(stream)
    assert isinstance(stream, Generator)
    stream.close()
    assert b"".join(read_all(link)) == b"right"


@pytest.mark.parametrize(
    ("command", "argument0", "add"), [(b"WRTE", 7, 1), (b"WRTE", 9, 0), (b"OKAY", 9, 0), (b"AUTH", 7, 0)]
)
def test_a_packet_that_belongs_to_nothing(play: Play, command: bytes, argument0: int, add: int) -> None:
    def act(peer: Peer) -> None:
        peer.welcome()
        number = peer.start_service()
        peer.send(command, argument0, number + add, b"x")

    link = play(act)
    link.connect()
    fails(TroubleKind.PROTOCOL_ERROR, lambda: read_all(link), r"packet \(\w+\)")


def test_an_adbd_that_starts_again(play: Play) -> None:
    def act(peer: Peer) -> None:
        peer.welcome()
        peer.start_service()
        peer.send(b"CNXN", 0x01000000, 4096, b"device::\0")

    link = play(act)
    link.connect()
    fails(TroubleKind.LOST, lambda: read_all(link), "restarted")


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (struct.pack("<4sI", b"DATA", 64 * 1024 + 1), TroubleKind.PROTOCOL_ERROR, "in a file transfer"),
        (struct.pack("<4sI", b"OKAY", 0), TroubleKind.PROTOCOL_ERROR, "in a file transfer"),
        (struct.pack("<4sI", b"FAIL", 2**31), TroubleKind.PROTOCOL_ERROR, "in a file transfer"),
        (struct.pack("<4sI", b"FAIL", 9) + b"\x1b[2J\xff\nbad", TroubleKind.BROKEN, r"transfer /f: \[2J\ufffd bad\."),
        (struct.pack("<4sI", b"DATA", 10) + b"half", TroubleKind.LOST, "broke off"),
    ],
)
def test_wrong_answers_in_a_pull(play: Play, tmp_path: Path, answer: bytes, kind: TroubleKind, text: str) -> None:
    def act(peer: Peer) -> None:
        peer.welcome()
        number = peer.start_service()
        peer.take_request(number)
        peer.send(b"WRTE", 7, number, answer)
        peer.expect(b"OKAY")
        peer.send(b"CLSE", 7, number)

    link = play(act)
    link.connect()
    fails(kind, lambda: link.get("/f", tmp_path / "back"), text)


def test_a_device_that_breaks_off_a_push(play: Play, tmp_path: Path) -> None:
    def act(peer: Peer) -> None:
        peer.welcome()
        number = peer.start_service()
        peer.take_request(number)
        peer.expect(b"WRTE")
        peer.send(b"CLSE", 7, number)

    (tmp_path / "file").write_bytes(bytes(100_000))
    link = play(act)
    link.connect()
    fails(TroubleKind.LOST, lambda: link.put(tmp_path / "file", "/f"), "broke off")


def test_a_packet_may_take_longer_than_the_silence_limit(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece of it comes a third of the limit after the one before."""
    now_s = 1000.0
    for module in (adb_packets, adb_service, adb_file_transfer):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now_s), raising=False)

    def act(peer: Peer) -> None:
        nonlocal now_s
        peer.welcome()
        number = peer.start_service()
        peer.take_request(number)
        packets = link._packets
        assert packets is not None

        def has_arrived(sent_s: float) -> bool:
            return packets.last_byte_s == sent_s

        content = struct.pack("<4sI", b"DATA", 1000) + b"x" * 1000 + struct.pack("<4sI", b"DONE", 0)
        data = peer.encode(b"WRTE", 7, number, content)
        for start in range(0, len(data), 100):
            now_s += LIMITS.silence_s / 3
            peer.send_raw(data[start : start + 100])
            await_condition(partial(has_arrived, now_s))

    link = play(act)
    link.connect()
    link.get("/f", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"x" * 1000
