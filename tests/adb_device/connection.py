"""One client's connection to the emulated device."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric import rsa

from tests.adb_device.device_files import DeviceFiles
from tests.adb_device.device_key import is_signed, parse_public_key
from tests.adb_device.device_options import DeviceOptions
from tests.adb_device.device_stream import DeviceStream
from tests.adb_device.line import Line
from tests.adb_device.shell_service import run_shell
from tests.adb_device.sync_service import run_sync

_HEADER = struct.Struct("<4s5I")
_ALL_BITS = 0xFFFFFFFF
_CHECKSUM_FREE_VERSION = 0x01000001
_TOKEN, _SIGNATURE, _PUBLIC_KEY = 1, 2, 3


class Owner(Protocol):
    """What a connection needs of its device."""

    options: DeviceOptions
    files: DeviceFiles

    @property
    def environment(self) -> dict[str, str]: ...

    def accepted_keys(self) -> list[rsa.RSAPublicKey]: ...

    def ask(self, connection: Connection, key: rsa.RSAPublicKey) -> None: ...

    def reboot_soon(self) -> None: ...


class Connection:
    """Reads packets in one thread, and serves each stream in a thread of its own.

    Attributes:
        max_payload_bytes: the most that both sides take.
    """

    def __init__(self, line: Line, owner: Owner) -> None:
        self.max_payload_bytes = owner.options.max_payload_bytes
        self._version = owner.options.version
        self._line = line
        self._owner = owner
        self._token = b""
        self._is_allowed = not owner.options.asks_for_keys
        self._streams: dict[int, DeviceStream] = {}
        self._numbers = 0
        self._services: list[threading.Thread] = []
        self._reader = threading.Thread(target=self._run, name="adb-device-connection")
        self._reader.start()

    def send(self, command: bytes, argument0: int, argument1: int, payload: bytes = b"") -> None:
        """Send a packet whole. Raises ConnectionError."""
        # Before the versions are agreed on there are checksums.
        needs_checksum = self._version < _CHECKSUM_FREE_VERSION or command in (b"AUTH", b"CNXN")
        checksum = sum(payload) & _ALL_BITS if needs_checksum else 0
        magic = int.from_bytes(command, "little") ^ _ALL_BITS
        self._line.write(_HEADER.pack(command, argument0, argument1, len(payload), checksum, magic) + payload)

    def welcome(self) -> None:
        """The client is allowed in: say who we are."""
        self._is_allowed = True
        options = self._owner.options
        properties = "ro.product.name=emulated;ro.product.model=Emulated;ro.product.device=emulated;"
        banner = f"{options.state}::{properties}features={','.join(options.features)}"
        self.send(b"CNXN", options.version, options.max_payload_bytes, banner.encode())

    def garble(self) -> None:
        """Put bytes on the wire that are no packet."""
        self._line.write_garbage()

    def close(self) -> None:
        """Hang up; the threads end by themselves."""
        self._line.close()

    def has_ended(self, wait_s: float) -> bool:
        """Whether all threads end within `wait_s`, after `close`: a service waits for its program."""
        for thread in (self._reader, *self._services):
            thread.join(wait_s)
        return not any(thread.is_alive() for thread in (self._reader, *self._services))

    def _run(self) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                self._handle(*self._receive())
        self._line.close()
        for stream in list(self._streams.values()):
            stream.hang_up()
        self._line.release()

    def _receive(self) -> tuple[bytes, int, int, bytes]:
        command, argument0, argument1, size_bytes, checksum, magic = _HEADER.unpack(self._line.read(_HEADER.size))
        # adbd closes the connection for each of these.
        if magic != int.from_bytes(command, "little") ^ _ALL_BITS:
            raise ConnectionError("not a packet")
        if size_bytes > self._owner.options.max_payload_bytes:
            raise ConnectionError("the packet is too big")
        payload = self._line.read(size_bytes)
        if self._version < _CHECKSUM_FREE_VERSION and command != b"CNXN" and sum(payload) & _ALL_BITS != checksum:
            raise ConnectionError("the checksum is wrong")
        return command, argument0, argument1, payload

    def _handle(self, command: bytes, argument0: int, argument1: int, payload: bytes) -> None:
        if command == b"CNXN":
            self._version = min(argument0, self._owner.options.version)
            self.max_payload_bytes = min(argument1, self._owner.options.max_payload_bytes)
            self._challenge()
        elif command == b"AUTH":
            self._authenticate(argument0, payload)
        elif not self._is_allowed:
            return
        elif command == b"OPEN":
            self._open(argument0, payload.rstrip(b"\0").decode())
        elif (stream := self._streams.get(argument1)) is None:
            if command == b"WRTE":
                self.send(b"CLSE", 0, argument0)
        elif command == b"WRTE":
            stream.take(payload)
        elif command == b"OKAY":
            stream.acknowledge()
        elif command == b"CLSE":
            self._close_stream(argument1)

    def _challenge(self) -> None:
        if self._owner.options.wireless_debugging:
            self.send(b"STLS", 0x01000000, 0)
        elif not self._owner.options.asks_for_keys:
            self.welcome()
        else:
            self._is_allowed = False
            self._token = os.urandom(20)
            self.send(b"AUTH", _TOKEN, 0, self._token)

    def _authenticate(self, kind: int, payload: bytes) -> None:
        if kind == _SIGNATURE:
            if any(is_signed(key, self._token, payload) for key in self._owner.accepted_keys()):
                self.welcome()
            else:
                self._challenge()
        elif kind == _PUBLIC_KEY:
            try:
                key = parse_public_key(payload.rstrip(b"\0"))
            except (ValueError, IndexError, struct.error) as error:
                raise ConnectionError("not a public key") from error
            self._owner.ask(self, key)

    def _open(self, their_number: int, service: str) -> None:
        kind = service.partition(":")[0].partition(",")[0]
        if kind not in ("shell", "exec", "sync", "reboot"):
            self.send(b"CLSE", 0, their_number)
            return
        self._numbers += 1
        number = self._numbers
        stream = self._streams[number] = DeviceStream(self, number, their_number)
        self.send(b"OKAY", number, their_number)
        thread = threading.Thread(target=self._serve, args=(number, stream, kind, service), name=f"adb-device-{kind}")
        thread.start()
        self._services = [running for running in self._services if running.is_alive()] + [thread]

    def _serve(self, number: int, stream: DeviceStream, kind: str, service: str) -> None:
        owner = self._owner
        if kind == "sync":
            run_sync(stream, owner.files)
        elif kind == "reboot":
            owner.reboot_soon()
        else:
            run_shell(stream, service, owner.files, owner.environment, owner.options)
        with contextlib.suppress(ConnectionError):
            self._close_stream(number)

    def _close_stream(self, number: int) -> None:
        """End a stream on this side; whoever is first, its service or its client, tells the client."""
        stream = self._streams.pop(number, None)
        if stream is not None:
            stream.hang_up()
            self.send(b"CLSE", number, stream.their_number)
