"""The USB wire over adb-shell's own transport; only libusb under it is a stand-in, there being no cable in a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import adb_shell.transport
import pytest

from halide_autotune.devices.adb.link import AdbLink
from halide_autotune.devices.adb.usb_wire import AdbUsbWire
from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import AdbAddress, ConnectionSettings

LIMITS = AdbLimits(silence_s=0.5)
LABEL = "phone (USB)"
ERRORS = ("Access", "Busy", "NotFound", "Timeout", "NoDevice", "IO")


class FakeEndpoint:
    def __init__(self, address: int) -> None:
        self._address = address

    def getAddress(self) -> int:
        return self._address


class FakeSetting:
    def getClass(self) -> int:
        return 0xFF

    def getSubClass(self) -> int:
        return 0x42

    def getProtocol(self) -> int:
        return 1

    def getNumber(self) -> int:
        return 0

    def iterEndpoints(self) -> list[FakeEndpoint]:
        return [FakeEndpoint(0x81), FakeEndpoint(0x02)]


class FakeDevice:
    """A phone and its opened handle in one; each of its failures is an error of libusb's."""

    def __init__(self, serial: str, fails: dict[str, Exception] | None = None) -> None:
        self.serial = serial
        self.fails = fails or {}
        self.to_read: list[bytes] = []
        self.written: list[bytes] = []
        self.write_at_most = 1 << 20
        self.is_claimed = False

    def _may_fail(self, what: str) -> None:
        if what in self.fails:
            raise self.fails[what]

    def iterSettings(self) -> list[FakeSetting]:
        return [FakeSetting()]

    def getSerialNumber(self) -> str:
        self._may_fail("serial")
        return self.serial

    def open(self) -> FakeDevice:
        self._may_fail("open")
        return self

    def kernelDriverActive(self, _: int) -> bool:
        return False

    def claimInterface(self, _: int) -> None:
        self._may_fail("claim")
        self.is_claimed = True

    def releaseInterface(self, _: int) -> None:
        self.is_claimed = False

    def close(self) -> None:
        pass

    def bulkRead(self, _: int, size_bytes: int, timeout: int) -> bytes:
        assert timeout > 0, "libusb would wait forever"
        self._may_fail("read")
        if not self.to_read:
            raise sys.modules["usb1"].USBErrorTimeout
        data, rest = self.to_read[0][:size_bytes], self.to_read[0][size_bytes:]
        self.to_read[:1] = [rest] if rest else []
        return data

    def bulkWrite(self, _: int, data: bytes, timeout: int) -> int:
        assert timeout > 0
        self._may_fail("write")
        self.written.append(data[: self.write_at_most])
        return len(self.written[-1])


@pytest.fixture
def usb1(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A stand-in for libusb1's module, seen by a fresh import of adb-shell's transport; `bus` lists its devices."""
    fake: Any = ModuleType("usb1")
    fake.bus = []
    fake.CLASS_VENDOR_SPEC, fake.ENDPOINT_DIR_MASK = 0xFF, 0x80
    fake.USBError = type("USBError", (Exception,), {})
    for name in ERRORS:
        setattr(fake, f"USBError{name}", type(f"USBError{name}", (fake.USBError,), {}))

    class USBContext:
        def open(self) -> None:
            pass

        def getDeviceIterator(self, skip_on_error: bool) -> list[FakeDevice]:
            assert skip_on_error
            return list(fake.bus)

    fake.USBContext = USBContext
    monkeypatch.setitem(sys.modules, "usb1", fake)
    _forget_transport(monkeypatch)
    yield fake
    adb_shell.transport.__dict__.pop("usb_transport", None)
    sys.modules.pop("adb_shell.transport.usb_transport", None)


def _forget_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "adb_shell.transport.usb_transport", raising=False)
    monkeypatch.delattr(adb_shell.transport, "usb_transport", raising=False)


def refused(serial: str | None = None) -> DeviceTrouble:
    with pytest.raises(DeviceTrouble) as caught:
        AdbUsbWire(serial, LABEL, LIMITS)
    return caught.value


def test_without_libusb1_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usb1", None)
    _forget_transport(monkeypatch)
    trouble = refused()
    assert trouble.kind is TroubleKind.REFUSED
    assert "libusb1" in trouble.message and "adb-shell[usb]" in trouble.next_step


def test_without_a_usb_it_is_said(usb1: Any) -> None:
    def broken() -> None:
        raise usb1.USBErrorIO("no bus")

    usb1.USBContext = broken
    trouble = refused()
    assert trouble.kind is TroubleKind.REFUSED and "no bus" in trouble.message


def test_the_only_device_is_taken(usb1: Any) -> None:
    usb1.bus.append(FakeDevice("A1"))
    wire = AdbUsbWire(None, LABEL, LIMITS)
    assert usb1.bus[0].is_claimed
    wire.close()
    assert not usb1.bus[0].is_claimed
    wire.close()


def test_one_of_several_is_chosen_by_its_serial(usb1: Any) -> None:
    usb1.bus += [FakeDevice("A1"), FakeDevice("B2")]
    AdbUsbWire("B2", LABEL, LIMITS).close()
    trouble = refused()
    assert trouble.kind is TroubleKind.REFUSED and "A1, B2" in trouble.message and "serial" in trouble.next_step


def test_a_device_that_is_not_there(usb1: Any) -> None:
    assert refused().kind is TroubleKind.UNREACHABLE
    usb1.bus.append(FakeDevice("A1"))
    trouble = refused("B2")
    assert trouble.kind is TroubleKind.UNREACHABLE and "A1" in trouble.message


def test_a_device_that_an_adb_server_holds(usb1: Any) -> None:
    usb1.bus.append(FakeDevice("A1", {"claim": usb1.USBErrorBusy()}))
    trouble = refused()
    assert trouble.kind is TroubleKind.UNREACHABLE
    assert "adb server" in trouble.message
    assert "adb kill-server" in trouble.next_step and "adb tcpip 5555" in trouble.next_step


@pytest.mark.parametrize("what", ["serial", "open"])
def test_a_device_that_this_user_may_not_open(usb1: Any, what: str) -> None:
    usb1.bus.append(FakeDevice("A1", {what: usb1.USBErrorAccess()}))
    trouble = refused()
    assert trouble.kind is TroubleKind.REFUSED and "udev" in trouble.next_step


def test_an_unreadable_neighbour_does_not_matter(usb1: Any) -> None:
    usb1.bus += [FakeDevice("A1", {"serial": usb1.USBErrorAccess()}), FakeDevice("B2")]
    AdbUsbWire("B2", LABEL, LIMITS).close()


def test_another_failure_is_told_in_libusbs_words(usb1: Any) -> None:
    usb1.bus.append(FakeDevice("A1", {"open": usb1.USBErrorIO("LIBUSB_ERROR_IO [-1]")}))
    trouble = refused()
    assert trouble.kind is TroubleKind.UNREACHABLE and "LIBUSB_ERROR_IO" in trouble.message


def test_reading_and_writing(usb1: Any) -> None:
    phone = FakeDevice("A1")
    usb1.bus.append(phone)
    phone.to_read = [b"left over from before", b"too"]
    wire = AdbUsbWire(None, LABEL, LIMITS)
    assert wire.read(24, 0) == b""
    phone.to_read = [b"abcdef"]
    assert wire.read(4, 1) + wire.read(4, 1) == b"abcdef"
    phone.write_at_most = 10
    wire.write(b"header", b"a payload that goes in parts")
    assert phone.written == [b"header", b"a payload ", b"that goes ", b"in parts"]
    wire.close()


def test_what_came_before_a_timeout_is_kept(usb1: Any) -> None:
    phone = FakeDevice("A1")
    usb1.bus.append(phone)
    wire = AdbUsbWire(None, LABEL, LIMITS)
    timeout = usb1.USBErrorTimeout()
    timeout.received = bytearray(b"part")
    phone.fails["read"] = timeout
    assert wire.read(24, 1) == b"part"


def test_a_pulled_cable_is_a_lost_connection(usb1: Any) -> None:
    phone = FakeDevice("A1")
    usb1.bus.append(phone)
    wire = AdbUsbWire(None, LABEL, LIMITS)
    phone.fails = {"read": usb1.USBErrorNoDevice(), "write": usb1.USBErrorNoDevice()}
    for action in (lambda: wire.read(24, 1), lambda: wire.write(b"h", b"p")):
        with pytest.raises(DeviceTrouble, match="gone from the USB") as caught:
            action()
        assert caught.value.kind is TroubleKind.LOST


def test_a_device_that_takes_nothing_is_silent(usb1: Any) -> None:
    phone = FakeDevice("A1")
    usb1.bus.append(phone)
    wire = AdbUsbWire(None, LABEL, LIMITS)
    phone.fails = {"write": usb1.USBErrorTimeout()}
    with pytest.raises(DeviceTrouble) as caught:
        wire.write(b"h", b"p")
    assert caught.value.kind is TroubleKind.TIMEOUT


def test_the_link_lets_go_of_a_device_that_does_not_answer(usb1: Any, tmp_path: Path) -> None:
    phone = FakeDevice("A1")
    usb1.bus.append(phone)
    none = tmp_path / "none"
    connections = ConnectionSettings(none, none, (), tmp_path / "adbkey", "someone@somewhere", none)
    link = AdbLink("phone", AdbAddress(serial="A1"), connections, limits=AdbLimits(connect_s=0.2))
    with pytest.raises(DeviceTrouble, match="does not answer"):
        link.connect()
    assert phone.written[0].startswith(b"CNXN") and not phone.is_claimed
