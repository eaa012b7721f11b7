"""Which servers an SSH connection goes through, and how each is spoken to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from halide_autotune.devices.inventory.address import parse_ssh_address
from halide_autotune.devices.remote_place import ConnectionSettings, SshAddress
from halide_autotune.devices.ssh.config import configured_options, refused
from halide_autotune.targets.errors import UsageError

CONNECT_TIMEOUT_S = 10.0
ALIVE_INTERVAL_S = 15.0
DEFAULT_PORT = 22
_HIGHEST_PORT = 65535
_MOST_JUMPS = 8
_DIRECT = ("none",)
_NOWHERE = ("none", "/dev/null")
# OpenSSH's, of the whole system.
_GLOBAL_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
_ALIAS = re.compile(r"[^@/-][^@/]*")
_HOST = re.compile(r"[^\s@/-][^\s@/]*")
_USER = re.compile(r"[^\s-][^\s]*")
_DURATION = re.compile(r"(\d{1,9})([smhdw]?)", re.ASCII)
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True)
class KnownHost:
    """Where a server's host key is looked up.

    Attributes:
        name: what known_hosts has for it: host, [host]:port, or the configuration's HostKeyAlias.
        is_alias: the configuration gave that name.
        files: where the key may be; a user adds it to the first.
        of_system: where else it may be, for all users of this machine.
        revoked: files of keys that are not to be trusted, wherever else they are.
        keygen: OpenSSH's ssh-keygen, if it is installed.
    """

    name: str
    is_alias: bool
    files: tuple[Path, ...]
    of_system: tuple[Path, ...]
    revoked: tuple[Path, ...]
    keygen: Path | None


@dataclass(frozen=True)
class LoginKeys:
    """The keys to log in with.

    Attributes:
        files: private keys to try.
        are_named: they were named for this host, so that a missing one is worth a word.
        are_all: no other keys of the agent.
        use_agent: whether the agent is asked at all.
    """

    files: tuple[Path, ...]
    are_named: bool
    are_all: bool
    use_agent: bool


@dataclass(frozen=True)
class SshHop:
    """One server on the way to a device; the last one is the device.

    Attributes:
        alive_interval_s: seconds of silence after which the server is asked whether it is still there.
        behind: the hops before it, as `ssh -J` takes them; empty when it is reached directly.
        is_device: true for the last hop.
    """

    host: str
    port: int
    user: str
    host_key: KnownHost
    keys: LoginKeys
    connect_timeout_s: float
    alive_interval_s: float
    behind: tuple[str, ...] = ()
    is_device: bool = True

    @property
    def place(self) -> str:
        """user@host:port."""
        return SshAddress(self.host, self.port, self.user).describe()


def plan_route(address: SshAddress, connections: ConnectionSettings, depth: int = 0) -> tuple[SshHop, ...]:
    """The servers to the device at `address`, outermost first, by the address and the user's SSH configuration.

    Args:
        depth: jump hosts that lie behind this address.

    Raises:
        DeviceTrouble: the configuration cannot be read, or asks for something that is not supported.
    """
    if depth > _MOST_JUMPS:
        raise refused(
            f"The way to {address.host} has more than {_MOST_JUMPS} jump hosts, or a loop.",
            "Correct ProxyJump in the SSH configuration, or the device's jump hosts.",
        )
    _check(address.host, _ALIAS, "host")
    if address.user is not None:
        _check(address.user, _USER, "user")
    options = configured_options(address, connections)
    hop = _hop(address, options, connections)
    jump = address.jump or _configured_jump(options, address.host)
    # A pattern such as `Host *` gives a jump host itself as jump host.
    if depth > 0 and not address.jump and jump and jump[-1].rpartition("@")[2].partition(":")[0] == address.host:
        jump = ()
    if jump in ((), _DIRECT):
        return (hop,)
    *before, last = jump
    try:
        nearest = parse_ssh_address(last.removeprefix("ssh://"))
    except UsageError as error:
        raise refused(
            f"{address.host} has an unusable jump host: {error.message}",
            "Correct the SSH configuration or the inventory.",
        ) from error
    named = address.identity_file if address.jump else None
    nearest = replace(nearest, jump=tuple(before), identity_file=named)
    way = tuple(replace(one, is_device=False) for one in plan_route(nearest, connections, depth + 1))
    return (*way, replace(hop, behind=tuple(one.place for one in way)))


def _configured_jump(options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    # As for ssh, the one that comes first counts.
    for keyword, value in options.items():
        if keyword == "proxycommand":
            if value is None:
                return ()
            raise refused(
                f"The SSH configuration has a ProxyCommand for {name}, which is not supported.",
                "Use ProxyJump there, or name jump hosts in the inventory.",
            )
        if keyword == "proxyjump":
            jump = tuple(word.strip() for word in value.split(","))
            return () if jump == _DIRECT else jump
    return ()


def _hop(address: SshAddress, options: Mapping[str, Any], connections: ConnectionSettings) -> SshHop:
    host = str(options["hostname"])
    user = options["user"]
    if not user:
        raise refused("The user name for the login is not known.", "Give it in the address: user@host.")
    _check(host, _HOST, "host")
    _check(user, _USER, "user")
    port = _port(options["port"], address.host)
    alias = options.get("hostkeyalias")
    files, named = _identity_files(address, options, connections)
    ssh = connections.ssh_program
    return SshHop(
        host=host,
        port=port,
        user=user,
        host_key=KnownHost(
            name=alias or (host if port == DEFAULT_PORT else f"[{host}]:{port}"),
            is_alias=alias is not None,
            # Keys are never taken on trust here, so that the user's being "nowhere" can only mean the usual file.
            files=_files(options.get("userknownhostsfile", "")) or (connections.known_hosts_file,),
            of_system=_files(options.get("globalknownhostsfile", _GLOBAL_KNOWN_HOSTS)),
            revoked=_files(options.get("revokedhostkeys", "")),
            keygen=None if ssh is None else ssh.with_name("ssh-keygen"),
        ),
        keys=LoginKeys(
            files=files,
            are_named=named,
            are_all=address.identity_file is not None or str(options.get("identitiesonly")).lower() in ("yes", "true"),
            use_agent=options.get("identityagent") != "none",
        ),
        connect_timeout_s=_duration_s(options, "connecttimeout", CONNECT_TIMEOUT_S),
        alive_interval_s=_duration_s(options, "serveraliveinterval", ALIVE_INTERVAL_S),
    )


def _files(text: str) -> tuple[Path, ...]:
    """The files that an option names."""
    # Neither reader keeps the quotes of one path.
    try:
        words = [text] if Path(text).expanduser().is_file() else shlex.split(text)
    except ValueError:
        words = [text]
    return tuple(Path(word).expanduser() for word in words if word not in _NOWHERE)


def _identity_files(
    address: SshAddress, options: Mapping[str, Any], connections: ConnectionSettings
) -> tuple[tuple[Path, ...], bool]:
    if address.identity_file is not None:
        return (address.identity_file.expanduser(),), True
    if names := options["identityfile"]:
        return tuple(Path(name).expanduser() for name in names if name != "none"), True
    return connections.identity_files, False


def _check(name: str, form: re.Pattern[str], what: str) -> None:
    if not form.fullmatch(name) or not name.isprintable():
        raise refused(
            f"{name[:80]!r} is not the name of a {what}.", "Correct it in the SSH configuration or the inventory."
        )


def _port(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= _HIGHEST_PORT:
        raise refused(f"The SSH configuration has the port {text[:40]!r} for {name}.", "Correct the SSH configuration.")
    return int(text)


def _duration_s(options: Mapping[str, Any], keyword: str, default_s: float) -> float:
    """Seconds of a value such as 90 or 1m30s; the default for 0, which would mean to wait for ever."""
    text = str(options.get(keyword, "")).lower()
    parts = _DURATION.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        return default_s
    return float(sum(int(number) * _UNIT_S[unit] for number, unit in parts)) or default_s
