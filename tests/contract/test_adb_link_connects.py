"""Connecting to Android devices: keys, people, wrong ports, and an adb server beside us."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from halide_autotune.devices.adb.link import AdbLink
from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.device_trouble import TroubleKind
from tests.adb_device.adb_device import AdbDevice
from tests.adb_device.device_options import DeviceOptions, old_phone
from tests.adb_device.link_outcomes import output, trouble
from tests.adb_device.link_to import link_to
from tests.adb_device.real_adb import RealAdb

OPTIONS = {"new": DeviceOptions(), "old": old_phone()}


@pytest.fixture(params=OPTIONS)
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AdbDevice]:
    with AdbDevice(tmp_path / "device", OPTIONS[request.param]) as emulated:
        yield emulated


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key that is made once."""
    return tmp_path_factory.mktemp("keys")


@pytest.fixture
def link(device: AdbDevice, keys: Path) -> Iterator[AdbLink]:
    connected = link_to(device.port, keys)
    connected.connect()
    yield connected
    connected.close()


def test_connecting_again_and_closing_twice_are_quiet(link: AdbLink) -> None:
    link.connect()
    assert output(link, "echo", "on") == b"on\n"
    link.close()
    link.close()
    link.connect()
    assert output(link, "echo", "on") == b"on\n"


def test_a_closed_port_is_unreachable(tmp_path: Path, keys: Path) -> None:
    with AdbDevice(tmp_path / "device") as device:
        device.close_port()
        with trouble(TroubleKind.UNREACHABLE, f"phone (127.0.0.1:{device.port})", f"adb tcpip {device.port}"):
            link_to(device.port, keys).connect()
        device.open_port()
        link = link_to(device.port, keys)
        link.connect()
        link.close()


def test_a_device_that_says_nothing_is_silent(tmp_path: Path, keys: Path) -> None:
    with AdbDevice(tmp_path / "device") as device:
        device.silence()
        with trouble(TroubleKind.TIMEOUT, "does not answer"):
            link_to(device.port, keys, limits=AdbLimits(connect_s=1.0)).connect()


def test_another_server_is_protocol_error(keys: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connected, _ = server.accept()
            with connected:
                connected.sendall(b"SSH-2.0-OpenSSH_9.2 with a long greeting\r\n")
                connected.recv(1024)

        answering = threading.Thread(target=answer)
        answering.start()
        with trouble(TroubleKind.PROTOCOL_ERROR, "not an ADB packet", "ADB port"):
            link_to(server.getsockname()[1], keys).connect()
        answering.join()


def test_a_wireless_debugging_port_is_explained(tmp_path: Path, keys: Path) -> None:
    with (
        AdbDevice(tmp_path / "device", DeviceOptions(wireless_debugging=True)) as device,
        trouble(TroubleKind.REFUSED, "wireless-debugging", "adb tcpip 5555"),
    ):
        link_to(device.port, keys).connect()


def test_a_device_in_recovery_is_explained(tmp_path: Path, keys: Path) -> None:
    with (
        AdbDevice(tmp_path / "device", DeviceOptions(state="recovery")) as device,
        trouble(TroubleKind.BROKEN, "'recovery'"),
    ):
        link_to(device.port, keys).connect()


def test_the_serial_is_checked_when_it_is_given(tmp_path: Path, keys: Path) -> None:
    with AdbDevice(tmp_path / "device", DeviceOptions(serial="R58M1234")) as device:
        right = link_to(device.port, keys, serial="R58M1234")
        right.connect()
        right.close()
        with trouble(TroubleKind.REFUSED, "R58M1234", "OTHER"):
            link_to(device.port, keys, serial="OTHER").connect()


def test_a_person_is_told_to_tap_and_the_key_is_remembered(tmp_path: Path) -> None:
    with AdbDevice(tmp_path / "device", DeviceOptions(asks_for_keys=True)) as device:
        told: list[str] = []

        def tell(message: str) -> None:
            told.append(message)
            threading.Thread(target=device.tap_allow).start()

        link = link_to(device.port, tmp_path, tell)
        link.connect()
        assert output(link, "echo", "in") == b"in\n"
        link.close()
        assert len(told) == 1 and "tap Allow" in told[0] and f"127.0.0.1:{device.port}" in told[0]
        link.connect()
        link.close()
        assert len(told) == 1, "a known key was asked for again"
        device.accept_key(tmp_path / "adb" / "adbkey.pub")  # what was written beside the key is that key's


def test_a_key_that_nobody_allows_is_refused(tmp_path: Path) -> None:
    with AdbDevice(tmp_path / "device", DeviceOptions(asks_for_keys=True)) as device:
        link = link_to(device.port, tmp_path, limits=AdbLimits(allow_s=0.5))
        with trouble(TroubleKind.REFUSED, "phone", "Nobody tapped Allow", "tap Allow"):
            link.connect()
        # The question is still on the screen: with its answer the next try is let in.
        assert device.tap_allow()
        link.connect()
        link.close()


def test_a_device_that_hangs_up_at_our_key_is_refused(tmp_path: Path) -> None:
    with AdbDevice(tmp_path / "device", DeviceOptions(asks_for_keys=True)) as device:
        link = link_to(device.port, tmp_path, lambda _: device.drop_connections())
        with trouble(TroubleKind.REFUSED, "closed the connection", "our key"):
            link.connect()


@pytest.mark.skipif(shutil.which("adb") is None, reason="adb is not installed")
def test_beside_a_running_adb_server(device: AdbDevice, link: AdbLink, tmp_path: Path) -> None:
    with RealAdb(tmp_path / "home") as adb:
        assert adb.connect(device.port).startswith("connected to")
        (tmp_path / "file").write_bytes(os.urandom(1_000_000))
        stream = link.stream(["sleep", "1000"])
        next(stream)
        assert adb.run("shell", "echo other", port=device.port).stdout.strip() == b"other"
        assert adb.run("push", str(tmp_path / "file"), "/data/local/tmp/theirs", port=device.port).returncode == 0
        assert isinstance(stream, Generator)
        stream.close()
        link.put(tmp_path / "file", "/data/local/tmp/ours")
        assert (device.temporary / "ours").read_bytes() == (device.temporary / "theirs").read_bytes()
        assert adb.state(device.port) == "device"


@pytest.mark.toolchain
@pytest.mark.skipif(shutil.which("adb") is None, reason="adb is not installed")
def test_the_key_of_the_real_adb_works(tmp_path: Path) -> None:
    with (
        RealAdb(tmp_path / "home") as adb,
        AdbDevice(tmp_path / "device", DeviceOptions(asks_for_keys=True)) as device,
    ):
        device.accept_key(adb.public_key_file)
        (tmp_path / "adb").mkdir()
        shutil.copy(adb.public_key_file.with_suffix(""), tmp_path / "adb" / "adbkey")  # without its .pub
        link = link_to(device.port, tmp_path)
        link.connect()
        assert output(link, "echo", "in") == b"in\n"
        link.close()


@pytest.mark.toolchain
@pytest.mark.skipif(shutil.which("adb") is None, reason="adb is not installed")
def test_our_key_works_with_the_real_adb(tmp_path: Path) -> None:
    with AdbDevice(tmp_path / "device", DeviceOptions(asks_for_keys=True)) as device:
        link = link_to(device.port, tmp_path, lambda _: threading.Thread(target=device.tap_allow).start())
        link.connect()
        link.close()
        home = tmp_path / "home"
        with RealAdb(home, key_file=tmp_path / "adb" / "adbkey") as adb:
            adb.connect(device.port)
            assert adb.await_state(device.port, "device")
