"""An emulated Android device that real ADB clients talk to over TCP."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives.asymmetric import rsa

from tests.adb_device.connection import Connection
from tests.adb_device.device_files import DeviceFiles
from tests.adb_device.device_key import parse_public_key
from tests.adb_device.device_options import DeviceOptions
from tests.adb_device.line import Line, LineFaults
from tests.adb_device.programs import kill_programs
from tests.process_state import PATIENCE_S

_LOOK_S = 0.05
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


class AdbDevice:
    """Real packets, signatures, flow control, shells and files; see `DeviceFiles` for what is not separated.

    Faults are injected by methods, at any time and from any thread. Close it, or use it in a `with` statement.

    Args:
        folder: becomes the device's file system; must not exist.

    Attributes:
        port: on the loopback; the same over the device's whole life, also while it is off.
        boot_id: what the device's /proc/sys/kernel/random/boot_id holds.
        reboot_s: how long a reboot takes.
        temporary: the folder that clients know as /data/local/tmp.
    """

    def __init__(self, folder: Path, options: DeviceOptions | None = None) -> None:
        self.options = options or DeviceOptions()
        folder.mkdir(parents=True)
        self.files = DeviceFiles(folder)
        self.temporary = self.files.temporary
        self._faults = LineFaults()
        self._lock = threading.Lock()
        self._connections: list[Connection] = []
        self._keys: list[rsa.RSAPublicKey] = []
        self._question: tuple[Connection, rsa.RSAPublicKey] | None = None
        self._asked = threading.Event()
        self._restart: threading.Thread | None = None
        self._switch_on = threading.Event()
        self._closing = False
        self.reboot_s = 0.5
        self._listener = self._bind()
        self.port: int = self._listener.getsockname()[1]
        self._install()
        self._boot()
        self._acceptor: threading.Thread | None = None
        self.open_port()

    @property
    def environment(self) -> dict[str, str]:
        """What programs see."""
        root = self.files.root
        return {
            "ANDROID_ROOT": f"{root}/system",
            "ANDROID_DATA": f"{root}/data",
            "HOME": str(root),
            "PATH": f"{root}/system/bin:{_SYSTEM_PATH}",
            "TMPDIR": str(self.temporary),
        }

    def accept_key(self, public_key_file: Path) -> None:
        """Allow a client's key beforehand, as a line of /data/misc/adb/adb_keys does."""
        self._keys.append(parse_public_key(public_key_file.read_bytes()))

    def forget_keys(self) -> None:
        """Revoke all authorizations; connections stay."""
        self._keys.clear()

    def tap_allow(self, wait_s: float = PATIENCE_S) -> bool:
        """Wait until the device asks for a key, and allow it; False when it does not ask in time."""
        if not self._asked.wait(wait_s):
            return False
        with self._lock:
            question, self._question = self._question, None
            self._asked.clear()
        if question is None:
            return False
        self._keys.append(question[1])
        with contextlib.suppress(ConnectionError):
            question[0].welcome()
        return True

    def drop_connections(self) -> None:
        """Hang up on all clients."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.close()

    def drop_after(self, size_bytes: int) -> None:
        """Hang up on the client that moves the last of this many bytes, in whatever direction."""
        self._faults.bytes_until_drop = size_bytes

    def silence(self, silent: bool = True) -> None:
        """Take and send nothing any more, with open connections; or go on."""
        self._faults.silence(silent)

    def silence_after(self, size_bytes: int) -> None:
        """Fall silent with the last of this many bytes, in whatever direction."""
        self._faults.bytes_until_silence = size_bytes

    def slow_down(self, bytes_per_s: float | None) -> None:
        """Move at most this much in each direction; None for as fast as it goes."""
        self._faults.bytes_per_s = bytes_per_s

    def fill_storage(self, free_bytes: int | None) -> None:
        """File transfers may write this much more; None for any amount."""
        self.files.set_free(free_bytes)

    def garble(self) -> None:
        """Send every client bytes that are no packet."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.garble()

    def kill_programs(self) -> None:
        """End everything that runs on the device."""
        kill_programs(self.files.root)

    def close_port(self) -> None:
        """Refuse new connections; those there are stay."""
        acceptor, self._acceptor = self._acceptor, None
        if acceptor is not None:
            # The socket stays bound, so that nobody else gets the port meanwhile.
            self._listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()

    def open_port(self) -> None:
        """Take new connections."""
        if self._acceptor is None:
            self._listener.listen()
            self._acceptor = threading.Thread(target=self._accept, name="adb-device-acceptor")
            self._acceptor.start()

    def reboot(self) -> None:
        """Drop everything, run nothing, refuse connections for `reboot_s`, come back with another boot id."""
        boot_id = self.boot_id
        self.reboot_soon()
        self.await_boot_after(boot_id)

    def await_boot_after(self, boot_id: str, wait_s: float = PATIENCE_S) -> bool:
        """Wait until the device has come back from the boot `boot_id`; False when it does not."""
        deadline_s = time.monotonic() + wait_s
        while self.boot_id == boot_id or self._acceptor is None:
            if time.monotonic() > deadline_s:
                return False
            time.sleep(0.01)
        return True

    def end_reboot(self) -> None:
        """Come back from a reboot now, or as soon as it can."""
        self._switch_on.set()

    def reboot_soon(self) -> None:
        """Start a reboot; returns at once."""
        with self._lock:
            if self._closing or (self._restart is not None and self._restart.is_alive()):
                return
            self._restart = threading.Thread(target=self._reboot, name="adb-device-reboot")
            self._restart.start()

    def ask(self, connection: Connection, key: rsa.RSAPublicKey) -> None:
        """A client has shown an unknown key: the screen asks."""
        with self._lock:
            self._question = (connection, key)
            self._asked.set()

    def accepted_keys(self) -> list[rsa.RSAPublicKey]:
        """The keys that were allowed."""
        return list(self._keys)

    def close(self) -> None:
        """End everything: connections, programs, threads, the port."""
        with self._lock:
            self._closing = True
        self._switch_on.set()
        if self._restart is not None:
            self._restart.join()
        self.close_port()
        self._listener.close()
        self._faults.silence(False)
        self._faults.bytes_per_s = None
        self._end_everything()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bind(self) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.options.receive_buffer_bytes is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.options.receive_buffer_bytes)
        if self.options.segment_bytes is not None:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, self.options.segment_bytes)
        # Only a port that was asked for by its number stays bound while nobody listens.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = free.getsockname()
        listener.bind(address)
        return listener

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections = [kept for kept in self._connections if not kept.has_ended(0)]
                self._connections.append(Connection(Line(connected, self._faults), self))

    def _reboot(self) -> None:
        self.close_port()
        self._end_everything()
        self._boot()
        self._switch_on.wait(self.reboot_s)
        self._switch_on.clear()
        if not self._closing:
            self.open_port()

    def _boot(self) -> None:
        self.boot_id = str(uuid.uuid4())
        self.files.set_boot_id(self.boot_id)

    def _end_everything(self) -> None:
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        # A service waits for its program, and may just be starting it.
        while not all(connection.has_ended(_LOOK_S) for connection in connections):
            self.kill_programs()
        self.kill_programs()

    def _install(self) -> None:
        """The one program of Android's that clients ask for and this machine does not have."""
        folder = self.files.root / "system" / "bin"
        folder.mkdir(parents=True)
        getprop = folder / "getprop"
        getprop.write_text(f'#!/bin/sh\ncase "$1" in ro.serialno) echo {self.options.serial};; *) echo;; esac\n')
        os.chmod(getprop, 0o755)
