"""An Android device over ADB."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from halide_autotune.devices.adb.file_transfer import AdbFileTransfer
from halide_autotune.devices.adb.greeting import greet
from halide_autotune.devices.adb.key import load_adb_key
from halide_autotune.devices.adb.packets import AdbPackets
from halide_autotune.devices.adb.service import AdbService
from halide_autotune.devices.adb.tcp_wire import AdbTcpWire
from halide_autotune.devices.adb.usb_wire import AdbUsbWire
from halide_autotune.devices.adb.wire import AdbLimits, AdbWire
from halide_autotune.devices.device_link import join_words
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import AdbAddress, ConnectionSettings
from halide_autotune.targets.errors import DeviceError, os_error_as
from halide_autotune.targets.values.texts import printable

_MAX_SERIAL_BYTES = 1024


class AdbLink:
    """The DeviceLink of Android devices, straight to the device's adbd, without an adb server.

    Over TCP it works beside an adb server that is connected to the same device. adb-shell brings the keys, the packets
    and USB; the services are our own, because its shell fails after ten silent seconds and its push does not notice a
    full storage.

    Sessions start in /, where nothing can be written, so paths are absolute. adbd gives everybody the owner's rights
    to a file that is put.

    Args:
        name: the device, as the user calls it.
        connections: the key file, and who we are.
        tell: shows a person a message while `connect` waits for someone to tap Allow on the device.
    """

    def __init__(
        self,
        name: str,
        address: AdbAddress,
        connections: ConnectionSettings,
        tell: Callable[[str], None] = lambda message: None,
        *,
        limits: AdbLimits | None = None,
    ) -> None:
        self._address = address
        self._label = f"{name} ({address.describe()})"
        self._connections = connections
        self._tell = tell
        self._limits = limits or AdbLimits()
        self._packets: AdbPackets | None = None
        self._services = 0

    def connect(self) -> None:
        """See `DeviceLink.connect`. May wait a minute for a person to allow our key, after a message."""
        if self._packets is not None:
            return
        key = load_adb_key(self._connections.adb_key_file, self._connections.lease_owner)
        packets = AdbPackets(self._open_wire(), self._label, self._limits)
        try:
            state = greet(packets, key, self._tell)
            if state != "device":
                message = f"{self._label} does not run Android: its state is '{state}'."
                raise DeviceTrouble(TroubleKind.BROKEN, message, next_step="Restart it with `adb reboot`.")
            self._packets, self._services = packets, 0
            self._check_serial()
        except BaseException:
            packets.close()
            self._packets = None
            raise

    def put(self, source: Path, path: str) -> None:
        """See `DeviceLink.put`."""
        with (
            os_error_as(DeviceError, f"{source} cannot be read"),
            source.open("rb") as file,
            self._service(b"sync:") as (packets, service),
        ):
            AdbFileTransfer(service, packets).send(file, path, int(source.stat().st_mtime))

    def get(self, path: str, destination: Path) -> None:
        """See `DeviceLink.get`; a file of more than 4 GiB is BROKEN."""
        own = os_error_as(DeviceError, f"{destination} cannot be written")
        with own, destination.open("wb") as file, self._service(b"sync:") as (packets, service):
            AdbFileTransfer(service, packets).receive(path, file)

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        """See `DeviceLink.stream`. Old devices run the program on a terminal, which makes \\n into \\r\\n."""
        # adbd's oldest service, which every device has.
        return self._stream(b"shell:" + join_words(words).encode("ascii"))

    def close(self) -> None:
        """See `DeviceLink.close`. The device hangs up on what still runs there."""
        packets, self._packets = self._packets, None
        if packets is not None:
            packets.close()

    def _open_wire(self) -> AdbWire:
        address = self._address
        if address.host is None:
            return AdbUsbWire(address.serial, self._label, self._limits)
        return AdbTcpWire(address.host, address.port, self._label, self._limits)

    def _check_serial(self) -> None:
        """Check that the device behind a network address is the right one: addresses move."""
        if self._address.host is None or self._address.serial is None:
            return
        output = bytearray()
        deadline_s = time.monotonic() + self._limits.connect_s
        with contextlib.closing(self._stream(b"shell:getprop ro.serialno")) as answer:
            for data in answer:
                output += data
                if len(output) > _MAX_SERIAL_BYTES or time.monotonic() > deadline_s:
                    break
        serial = printable(output.decode("utf-8", "replace"))[:100]
        if serial != self._address.serial:
            message = f"{self._label} is the device {serial or 'without a serial'}, not {self._address.serial}."
            advice = "Use the device's present address, or its serial."
            raise DeviceTrouble(TroubleKind.REFUSED, message, next_step=advice)

    def _stream(self, service_name: bytes) -> Generator[bytes, None, None]:
        with self._service(service_name) as (_, service):
            while (data := service.read()) or not service.ended:
                yield data

    @contextlib.contextmanager
    def _service(self, name: bytes) -> Iterator[tuple[AdbPackets, AdbService]]:
        """A service for the time of the block, closed at its end; the connection is closed where it must be."""
        packets = self._packets
        if packets is None:
            message = f"{self._label} is not connected."
            raise DeviceTrouble(TroubleKind.LOST, message, next_step="Connect again.")
        self._services += 1
        service: AdbService | None = None
        try:
            service = AdbService(packets, self._services, name)
            yield packets, service
        except BaseException as error:
            self._hang_up(service, error)
            raise
        self._hang_up(service, None)

    def _hang_up(self, service: AdbService | None, error: BaseException | None) -> None:
        """Close the service where the connection is between packets, else the connection."""
        between_packets = (
            not error.kind.ends_connection
            if isinstance(error, DeviceTrouble)
            else error is None or isinstance(error, (GeneratorExit, OSError))
        )
        if service is not None and between_packets:
            try:
                service.close()
                return
            except DeviceTrouble:
                pass  # the operation has succeeded or failed already; the next one finds the connection closed
        self.close()
