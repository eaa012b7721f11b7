"""Where a remote device is, and how it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


class PasswordSource(Enum):
    """Where the password or the key's passphrase of an SSH device comes from."""

    NONE = "none"
    PROMPT = "prompt"
    KEYRING = "keyring"


@dataclass(frozen=True)
class SshAddress:
    """An SSH server.

    Attributes:
        host: a name, an address, or a Host of the user's SSH configuration.
        port, user: None uses the configuration's, else 22 and this user.
        identity_file: a private key; None uses the configuration's, the agent's, and the usual files.
        jump: hosts on the way, each [user@]host[:port], outermost first; empty uses the configuration's ProxyJump.
        password_source: where a password comes from when keys are not enough.
    """

    host: str
    port: int | None = None
    user: str | None = None
    identity_file: Path | None = None
    jump: tuple[str, ...] = ()
    password_source: PasswordSource = PasswordSource.NONE

    def describe(self) -> str:
        """As a user writes it: [user@]host[:port]."""
        user = "" if self.user is None else f"{self.user}@"
        return f"{user}{_bracketed(self.host)}" + ("" if self.port is None else f":{self.port}")


@dataclass(frozen=True)
class AdbAddress:
    """An Android device: over TCP when `host` is given, else over USB.

    Attributes:
        serial: of a USB device; None if exactly one is plugged in. Over TCP, the device must have it.
    """

    host: str | None = None
    port: int = 5555
    serial: str | None = None

    def describe(self) -> str:
        """As adb names it: host:port, or the serial."""
        return f"{_bracketed(self.host)}:{self.port}" if self.host is not None else self.serial or "USB"


@dataclass(frozen=True)
class UrlAddress:
    """A device behind the transport of an installed package.

    Attributes:
        url: NAME://…, where NAME is the transport's; the rest is its own.
    """

    url: str

    @property
    def transport(self) -> str:
        """The transport's name."""
        return self.url.partition("://")[0]

    def describe(self) -> str:
        """The URL."""
        return self.url


Address = SshAddress | AdbAddress | UrlAddress


@dataclass(frozen=True)
class RemotePlace:
    """A slot of a device behind SSH, ADB or a package's transport.

    Attributes:
        folder: the SDK's folder on the device; None for the default.
        lease_folder: the folder of its leases, shared by all its users; None for the default.
        slot: which of the device's slots, from 0.
        cores: the cores that kernels run on; empty for all.
        environment: added to the kernels' environment variables.
        performance_mode: ask for the performance governor while the device is in use.
    """

    address: Address
    folder: str | None = None
    lease_folder: str | None = None
    slot: int = 0
    cores: tuple[int, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    performance_mode: bool = True


@dataclass(frozen=True)
class ConnectionSettings:
    """This machine's part of connections: keys, files and names.

    Attributes:
        ssh_config_file, known_hosts_file: the user's; they need not exist.
        identity_files: private keys tried if an address names none; they need not exist.
        adb_key_file: the RSA key for Android devices; made at first use.
        lease_owner: the owner of leases, for people: user@host.
        token_folder: the tokens of leases taken by hand.
        secrets: passwords that were asked for, by device name; never written anywhere.
        ssh_program: OpenSSH's client, which reads the configuration; None where it is not installed.
        environment: what that program sees.
        own_token: of leases that are taken, by which a run takes over those of its killed process; None makes new ones.
    """

    ssh_config_file: Path
    known_hosts_file: Path
    identity_files: tuple[Path, ...]
    adb_key_file: Path
    lease_owner: str
    token_folder: Path
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ssh_program: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    own_token: str | None = field(default=None, repr=False)


def _bracketed(host: str) -> str:
    """An IPv6 address stands in brackets, so that its colons are not a port's."""
    return f"[{host}]" if ":" in host else host
