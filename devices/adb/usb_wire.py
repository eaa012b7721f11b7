"""ADB over USB."""

from __future__ import annotations

import contextlib
import time
from types import ModuleType
from typing import Any

from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.targets.values.texts import printable

_PACKAGE = "adb-shell[usb]"
# What an interrupted session left in the device's pipe is read before anything is sent, for a moment.
_STALE_BYTES = 16 * 1024
_STALE_READS = 256
_STALE_WAIT_S = 0.05
_SHOWN_CHARACTERS = 300


class AdbUsbWire:
    """The ADB interface of a USB device, claimed for us alone.

    Args:
        serial: None takes the only device there is.
        label: the device in messages.

    Raises:
        DeviceTrouble: UNREACHABLE, missing, or in use by an adb server; REFUSED, trying again does not help.
    """

    def __init__(self, serial: str | None, label: str, limits: AdbLimits) -> None:
        self._library = _load_library()
        self._label = label
        self._limits = limits
        self._transport = _find(self._library, serial, label)
        try:
            self._transport.connect(limits.connect_s)
        except Exception as error:
            self.close()
            raise _explained(self._library, error, label) from error
        try:
            self._drain()
        except DeviceTrouble:
            self.close()
            raise

    def read(self, size_bytes: int, wait_s: float) -> bytes:
        """See `AdbWire.read`."""
        usb = self._library
        try:
            # libusb takes 0 ms as no timeout.
            data: bytes = self._transport.bulk_read(size_bytes, max(0.001, wait_s))
        except usb.exceptions.UsbReadFailedError as error:
            if isinstance(error.usb_error, usb.usb1.USBErrorTimeout):
                return bytes(getattr(error.usb_error, "received", b""))
            raise self._lost() from error
        return data

    def write(self, header: bytes, payload: bytes) -> None:
        """See `AdbWire.write`. Header and payload are separate transfers, as adbd reads them."""
        usb = self._library
        for part in (header, payload):
            rest = part
            while rest:
                try:
                    rest = rest[self._transport.bulk_write(rest, self._limits.silence_s) :]
                except usb.exceptions.UsbWriteFailedError as error:
                    cause = error.args[1] if len(error.args) > 1 else None
                    if isinstance(cause, usb.usb1.USBErrorTimeout):
                        message = f"{self._label} has taken no data for {self._limits.silence_s:g} s."
                        raise DeviceTrouble(TroubleKind.TIMEOUT, message) from error
                    raise self._lost() from error

    def close(self) -> None:
        """See `AdbWire.close`."""
        with contextlib.suppress(Exception):  # the device may be unplugged
            self._transport.close()

    def _drain(self) -> None:
        deadline_s = time.monotonic() + self._limits.connect_s
        for _ in range(_STALE_READS):
            if not self.read(_STALE_BYTES, _STALE_WAIT_S) or time.monotonic() > deadline_s:
                return

    def _lost(self) -> DeviceTrouble:
        return DeviceTrouble(TroubleKind.LOST, f"{self._label} is gone from the USB.", next_step="Check the cable.")


def _load_library() -> ModuleType:
    """Return adb-shell's USB transport, whose import already accesses the USB."""
    try:
        from adb_shell.transport import usb_transport
    except ImportError as error:
        message = "Android devices over USB need a package that is not installed: libusb1."
        advice = f"Install it with `pip install '{_PACKAGE}'`, or connect over TCP (adb tcpip 5555)."
        raise DeviceTrouble(TroubleKind.REFUSED, message, next_step=advice) from error
    except Exception as error:  # the system's libusb is missing, or it finds no USB
        message = f"The USB cannot be used here: {error}."
        advice = "Install libusb-1.0, or connect over TCP (adb tcpip 5555)."
        raise DeviceTrouble(TroubleKind.REFUSED, message, next_step=advice) from error
    library: ModuleType = usb_transport
    return library


def _find(library: ModuleType, serial: str | None, label: str) -> Any:
    """Return adb-shell's transport for the device."""
    found: dict[str, Any] = {}
    try:
        for transport in library.UsbTransport.find_all_adb_devices():
            try:
                found[str(transport.serial_number)] = transport
            except library.usb1.USBError as error:
                # A device whose serial cannot be read may be the one that is wanted.
                found.setdefault("", transport)
                unreadable = error
    except library.usb1.USBError as error:
        raise _explained(library, error, label) from error
    named = sorted(name for name in found if name)
    if serial in found:
        return found[serial]
    if serial is None and len(found) == 1 and named:
        return found[named[0]]
    if serial is None and len(named) > 1:
        message = f"{label} may be any of several Android devices on the USB: {_shown(named)}."
        raise DeviceTrouble(TroubleKind.REFUSED, message, next_step="Name one of them by its serial.")
    if "" in found:
        raise _explained(library, unreadable, label) from unreadable
    there = f" ({_shown(named)})" if named else ""
    raise DeviceTrouble(
        TroubleKind.UNREACHABLE,
        f"{label} is not among the Android devices on the USB{there}.",
        next_step="Check the cable, and switch USB debugging on in the device's developer options.",
    )


def _shown(serials: list[str]) -> str:
    return printable(", ".join(serials))[:_SHOWN_CHARACTERS]


def _explained(library: ModuleType, error: Exception, label: str) -> DeviceTrouble:
    usb1 = library.usb1
    if isinstance(error, usb1.USBErrorBusy):
        message = f"{label} is in use by another program, most likely an adb server."
        advice = "Run 'adb kill-server', or run 'adb tcpip 5555' and use the device over TCP."
        return DeviceTrouble(TroubleKind.UNREACHABLE, message, next_step=advice)
    if isinstance(error, usb1.USBErrorAccess):
        message = f"This user may not open {label} on the USB."
        advice = "Install Android's udev rules (Debian: android-sdk-platform-tools-common) and join the group plugdev."
        return DeviceTrouble(TroubleKind.REFUSED, message, next_step=advice)
    message = f"{label} cannot be opened on the USB: {error or type(error).__name__}."
    return DeviceTrouble(TroubleKind.UNREACHABLE, message, next_step="Unplug the device and plug it in again.")
