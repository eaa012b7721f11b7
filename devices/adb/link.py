"""An Android device over ADB."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.adb.file_transfer import AdbFileTransfer
from devices.adb.greeting import greet
from devices.adb.key import load_adb_key
from devices.adb.limits import AdbLimits
from devices.adb.packets import AdbPackets
from devices.adb.service import AdbService
from devices.adb.tcp_wire import AdbTcpWire
from devices.adb.usb_wire import AdbUsbWire
from devices.adb.wire import AdbWire
from devices.device_link import join_words
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.remote_place import AdbAddress, ConnectionSettings
from targets.errors import DeviceError

# After these nobody knows what the other end will say next.
_ENDS_CONNECTION = frozenset((TroubleKind.LOST, TroubleKind.TIMEOUT, TroubleKind.PROTOCOL_ERROR))
_MAX_SERIAL_BYTES = 1024


def _tell_nobody(message: str) -> None:
    del message


@dataclass
class _Connection:
    packets: AdbPackets
    max_payload_bytes: int
    services: int = 0


class AdbLink:
    """The DeviceLink of Android devices, straight to the device's adbd: no adb server is needed.

    Over TCP it works beside an adb server, which may be connected to the same device. adb-shell brings the keys, the
    packets and USB; the services are our own, because its shell fails after ten silent seconds and its push never
    sees a full storage.

    Sessions start in /, where nothing can be written: paths are best given whole. adbd gives a file that is put the
    owner's rights for everybody.

    Args:
        name: what the user calls the device.
        connections: the key file, and who we are.
        tell: shows a person a message while `connect` waits: someone must tap Allow on the device.
    """

    def __init__(
        self,
        name: str,
        address: AdbAddress,
        connections: ConnectionSettings,
        tell: Callable[[str], None] = _tell_nobody,
        *,
        limits: AdbLimits | None = None,
    ) -> None:
        self._address = address
        self._label = f"{name} ({address.describe()})"
        self._connections = connections
        self._tell = tell
        self._limits = limits or AdbLimits()
        self._connection: _Connection | None = None

    def connect(self) -> None:
        """See `DeviceLink.connect`. May wait a minute for a person to allow our key, after telling so."""
        if self._connection is not None:
            return
        key = load_adb_key(self._connections.adb_key_file, self._connections.lease_owner)
        packets = AdbPackets(self._open_wire(), self._label)
        try:
            greeting = greet(packets, key, self._label, self._limits, self._tell)
            if greeting.state != "device":
                message = f"{self._label} does not run Android: its state is '{greeting.state}'."
                raise DeviceTrouble(TroubleKind.BROKEN, message, next_step="Restart it: adb reboot.")
            self._connection = _Connection(packets, greeting.max_payload_bytes)
            self._check_serial()
        except BaseException:
            packets.close()
            self._connection = None
            raise

    def put(self, source: Path, path: str) -> None:
        """See `DeviceLink.put`."""
        with _own_files(source), source.open("rb") as file, self._file_transfer() as transfer:
            transfer.send(file, path, int(source.stat().st_mtime))

    def get(self, path: str, destination: Path) -> None:
        """See `DeviceLink.get`; a file of more than 4 GiB is BROKEN."""
        with _own_files(destination), destination.open("wb") as file, self._file_transfer() as transfer:
            transfer.receive(path, file)

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        """See `DeviceLink.stream`. Old devices run the program on a terminal, which makes \\n into \\r\\n."""
        # adbd's oldest service: every device has it, also those without exit codes or with a terminal only.
        return self._stream(b"shell:" + join_words(words).encode("ascii"))

    def close(self) -> None:
        """See `DeviceLink.close`. The device hangs up on what still runs there."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.packets.close()

    def _open_wire(self) -> AdbWire:
        address = self._address
        if address.host is None:
            return AdbUsbWire(address.serial, self._label, self._limits)
        return AdbTcpWire(address.host, address.port, self._label, self._limits)

    def _check_serial(self) -> None:
        """Whether the device behind a network address is the one that is meant: addresses move."""
        if self._address.host is None or self._address.serial is None:
            return
        output = bytearray()
        deadline_s = time.monotonic() + self._limits.connect_s
        with contextlib.closing(self._stream(b"shell:getprop ro.serialno")) as answer:
            for data in answer:
                output += data
                if len(output) > _MAX_SERIAL_BYTES or time.monotonic() > deadline_s:
                    break
        serial = "".join(filter(str.isprintable, output.decode("utf-8", "replace"))).strip()[:100]
        if serial != self._address.serial:
            message = f"{self._label} is the device {serial or 'without a serial'}, not {self._address.serial}."
            advice = "Give the address that the device has now, or its serial."
            raise DeviceTrouble(TroubleKind.REFUSED, message, next_step=advice)

    def _stream(self, service_name: bytes) -> Generator[bytes, None, None]:
        with self._service(service_name) as service:
            while (data := service.read()) or not service.ended:
                yield data

    @contextlib.contextmanager
    def _file_transfer(self) -> Iterator[AdbFileTransfer]:
        with self._service(b"sync:") as service:
            connection = self._connected()
            yield AdbFileTransfer(service, connection.packets, connection.max_payload_bytes, self._label, self._limits)

    @contextlib.contextmanager
    def _service(self, name: bytes) -> Iterator[AdbService]:
        """A service for the time of the block, hung up on at its end; the connection is closed where it must be."""
        connection = self._connected()
        connection.services += 1
        service: AdbService | None = None
        try:
            service = AdbService(
                connection.packets,
                connection.services,
                name,
                connection.max_payload_bytes,
                self._label,
                self._limits,
            )
            yield service
        except BaseException as error:
            self._hang_up(service, error)
            raise
        self._hang_up(service, None)

    def _hang_up(self, service: AdbService | None, error: BaseException | None) -> None:
        """Leave a service: politely where the connection is between packets, else by closing the connection."""
        between_packets = (
            error.kind not in _ENDS_CONNECTION
            if isinstance(error, DeviceTrouble)
            else error is None or isinstance(error, (GeneratorExit, OSError))
        )
        if service is not None and between_packets:
            try:
                service.close()
                return
            except DeviceTrouble:
                pass  # what was asked for is done or failed already; the next call finds the connection closed
        self.close()

    def _connected(self) -> _Connection:
        if self._connection is None:
            message = f"{self._label} is not connected."
            raise DeviceTrouble(TroubleKind.LOST, message, next_step="Connect again.")
        return self._connection


@contextlib.contextmanager
def _own_files(path: Path) -> Iterator[None]:
    """A failure of this machine's files as what it is: nothing that the device can help."""
    try:
        yield
    except OSError as error:
        raise DeviceError(f"{path} cannot be read or written here: {error.strerror or error}.") from error
