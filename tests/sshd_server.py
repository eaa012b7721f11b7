"""A real OpenSSH server for tests: on loopback, with keys and settings of its own, below one folder."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.kept_port import KeptPort

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
# The server insists on it when it runs as root.
PRIVILEGE_SEPARATION_FOLDER = Path("/run/sshd")
START_S = 120.0


class SshdServer:
    """One sshd that lets this user in with the keys in `authorized_keys`.

    Args:
        folder: where everything of it lies; made when missing.
        key_types: the types of its host keys.
        address: what it listens on.
        settings: further lines of its configuration; the first value of a keyword counts.
    """

    def __init__(
        self,
        folder: Path,
        key_types: Sequence[str] = ("ed25519",),
        address: str = "127.0.0.1",
        settings: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.address = address
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.authorized_keys = folder / "authorized_keys"
        self._kept_port = KeptPort(address)
        self.port = self._kept_port.number
        self._settings = tuple(settings)
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.authorized_keys.touch()
        self._key_types = tuple(key_types)
        for key_type in key_types:
            make_key(self.host_key(key_type), key_type)

    def host_key(self, key_type: str = "ed25519") -> Path:
        """The private host key; the public one is beside it, with .pub."""
        return self.folder / f"host_{key_type}"

    def change_host_key(self, key_type: str = "ed25519") -> None:
        """Make another host key of this type; a running server goes on with the old one until it is started anew."""
        for path in (self.host_key(key_type), self.host_key(key_type).with_suffix(".pub")):
            path.unlink()
        make_key(self.host_key(key_type), key_type)

    def authorize(self, public_key: Path, options: str = "") -> None:
        """Let the owner of this key in."""
        with self.authorized_keys.open("a") as file:
            file.write(f"{options} {public_key.read_text()}".lstrip())

    def known_hosts_lines(self) -> str:
        """What a user who trusts this server has in known_hosts."""
        name = f"[{self.address}]:{self.port}"
        keys = (self.host_key(key_type).with_suffix(".pub").read_text().split()[:2] for key_type in self._key_types)
        return "".join(f"{name} {' '.join(key)}\n" for key in keys)

    def start(self) -> None:
        """Start it and wait until it answers."""
        assert SSHD is not None
        if os.geteuid() == 0:
            PRIVILEGE_SEPARATION_FOLDER.mkdir(mode=0o755, exist_ok=True)
        configuration = self.folder / "sshd_config"
        configuration.write_text("\n".join(self._configuration()) + "\n")
        log = (self.folder / "sshd.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(configuration)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline_s = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self.kill()
                raise AssertionError(f"sshd does not start: {self.log()}")
            time.sleep(0.02)

    def log(self) -> str:
        return (self.folder / "sshd.log").read_text(errors="replace")

    def kill(self) -> None:
        """End the server and every session of it at once, without a word to its clients' programs."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop the server and its sessions where they are; the kernel goes on accepting connections and bytes."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def sessions(self) -> list[psutil.Process]:
        """The processes below the server: sessions, and what runs in them."""
        if self._process is None:
            return []
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        # The server first, so that it starts no further session.
        sessions = self.sessions()
        if self._process.poll() is None:
            self._process.send_signal(number)
        for session in sessions:
            try:
                session.send_signal(number)
            except psutil.NoSuchProcess:
                continue

    def _configuration(self) -> list[str]:
        return [
            *self._settings,
            f"Port {self.port}",
            f"ListenAddress {self.address}",
            *(f"HostKey {self.host_key(key_type)}" for key_type in self._key_types),
            f"AuthorizedKeysFile {self.authorized_keys}",
            f"PidFile {self.folder / 'sshd.pid'}",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "MaxStartups 100",
            "UseDNS no",
            # What this user's shell does at its start is not the tests' business, and may take long.
            f"SetEnv HOME={self.folder}",
        ]

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.address, self.port), timeout=5) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False


def make_key(path: Path, key_type: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair with ssh-keygen; returns the private key's path."""
    command = ["ssh-keygen", "-q", "-t", key_type, "-N", passphrase, "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path
