"""The real adb client, with an adb server of its own."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from tests.kept_port import KeptPort

_PATIENCE_S = 120.0


class RealAdb:
    """Runs `adb` commands; its server, keys and settings are apart from the user's.

    Args:
        folder: the home folder of client and server; must not exist.
        key_file: a private key to use; None makes one.
    """

    def __init__(self, folder: Path, key_file: Path | None = None) -> None:
        self._folder = folder
        (folder / ".android").mkdir(parents=True)
        self.public_key_file = folder / ".android" / "adbkey.pub"
        self._program = shutil.which("adb") or "adb"
        self._kept_port = KeptPort()
        self._port = self._kept_port.number
        if key_file is None:
            self._run("keygen", str(folder / ".android" / "adbkey"))
        else:
            shutil.copy(key_file, folder / ".android" / "adbkey")
            shutil.copy(f"{key_file}.pub", self.public_key_file)
        self._server = subprocess.Popen(
            [self._program, "-P", str(self._port), "nodaemon", "server"],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._await_server()

    def run(
        self, *words: str, port: int | None = None, stdin: bytes = b"", time_s: float = _PATIENCE_S
    ) -> subprocess.CompletedProcess[bytes]:
        """The outcome of `adb words`, of the device on the loopback's `port` when given."""
        device = [] if port is None else ["-s", f"127.0.0.1:{port}"]
        return self._run("-P", str(self._port), *device, *words, stdin=stdin, time_s=time_s)

    def connect(self, port: int) -> str:
        """Connect to a device on the loopback; what adb says."""
        return self.run("connect", f"127.0.0.1:{port}").stdout.decode()

    def state(self, port: int) -> str:
        """'device', 'offline', 'unauthorized' …; '' when the server does not know it."""
        for line in self.run("devices").stdout.decode().splitlines()[1:]:
            name, _, state = line.partition("\t")
            if name == f"127.0.0.1:{port}":
                return state
        return ""

    def await_state(self, port: int, state: str) -> bool:
        """Whether the device comes into `state`, in a while."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while self.state(port) != state:
            if time.monotonic() > deadline_s:
                return False
            time.sleep(0.05)
        return True

    def close(self) -> None:
        """End the server."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.run("kill-server", time_s=10)
        self._server.kill()
        self._server.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _environment(self) -> dict[str, str]:
        # Without the last one the server looks for Android's own emulators on well-known ports.
        return {"HOME": str(self._folder), "PATH": "/usr/bin:/bin", "ADB_LOCAL_TRANSPORT_MAX_PORT": "5554"}

    def _run(self, *words: str, stdin: bytes = b"", time_s: float = _PATIENCE_S) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self._program, *words],
            env=self._environment,
            input=stdin,
            capture_output=True,
            timeout=time_s,
            check=False,
        )

    def _await_server(self) -> None:
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port)):
                return
            time.sleep(0.02)
        self._server.kill()
        self._server.wait()
        raise AssertionError("the adb server does not start")
