"""What a user of this machine has to reach a test's SSH server with."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import ConnectionSettings, SshAddress
from halide_autotune.devices.ssh.link import SshLink
from tests.sshd_server import SshdServer, make_key

SSH = Path(found) if (found := shutil.which("ssh")) else None


class SshAccess:
    """A user's .ssh folder of its own, below a test's folder; no default keys.

    Attributes:
        key: a private key that nobody trusts until a server is told to.
        ssh_program: what reads the configuration; None leaves it to paramiko.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.config = folder / "config"
        self.known_hosts = folder / "known_hosts"
        self.key = make_key(folder / "key")
        self.known_hosts.touch()
        self.ssh_program = SSH

    def trust(self, *servers: SshdServer) -> None:
        """Know the servers' host keys, and be let in by them."""
        for server in servers:
            server.authorize(self.key.with_suffix(".pub"))
            with self.known_hosts.open("a") as file:
                file.write(server.known_hosts_lines())

    def address(self, server: SshdServer, **fields: Any) -> SshAddress:
        """The server's, with the key; further fields of SshAddress."""
        given = {"port": server.port, "user": server.user, "identity_file": self.key, **fields}
        return SshAddress(server.address, **given)

    def settings(
        self, identity_files: tuple[Path, ...] = (), secrets: tuple[tuple[str, str], ...] = ()
    ) -> ConnectionSettings:
        return ConnectionSettings(
            ssh_config_file=self.config,
            known_hosts_file=self.known_hosts,
            identity_files=identity_files,
            adb_key_file=self.folder / "adbkey",
            lease_owner="tester@here",
            token_folder=self.folder / "tokens",
            secrets=secrets,
            ssh_program=self.ssh_program,
            environment={"PATH": os.defpath},
        )


def works(link: SshLink) -> bool:
    """Whether it connects and runs a program; the server of password_server.py answers with the command."""
    try:
        link.connect()
        return b"".join(link.stream(["echo", "ok"])) in (b"ok\n", b"echo ok")
    finally:
        link.close()


def refusal(link: SshLink, kind: TroubleKind = TroubleKind.REFUSED) -> DeviceTrouble:
    """How connecting fails."""
    with pytest.raises(DeviceTrouble) as caught:
        link.connect()
    assert caught.value.kind is kind, str(caught.value)
    link.close()
    return caught.value


def shown_fingerprint(key: Path) -> str:
    """As ssh-keygen shows it to people."""
    listed = subprocess.run(["ssh-keygen", "-lf", str(key)], check=True, capture_output=True, text=True)
    return listed.stdout.split()[1]
