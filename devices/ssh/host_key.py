"""Whether a server is the one that the user trusts, by OpenSSH's known_hosts files.

paramiko's HostKeys knows neither markers nor patterns: with it, a revoked key would be trusted.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.devices.device_trouble import DeviceTrouble
from halide_autotune.devices.ssh.config import refused
from halide_autotune.devices.ssh.revoked_keys import is_revoked
from halide_autotune.devices.ssh.route import DEFAULT_PORT, SshHop

_RSA = "ssh-rsa"
REVOKED = "@revoked"
# A marker, names, the key's type, the key.
_LINE = re.compile(r"\s*(?:(@revoked|@cert-authority)\s+)?([^@#\s]\S*)\s+(\S+)\s+(\S+)")
_STARS = re.compile(r"\*+")


@dataclass(frozen=True)
class KnownHostKey:
    """One line of a known_hosts file.

    Attributes:
        line: its number, from 1.
        marker: REVOKED, that of a certificate authority, or empty for a key to trust.
        key_type: such as ssh-ed25519.
        blob: the public key as SSH sends it.
    """

    file: Path
    line: int
    marker: str
    key_type: str
    blob: bytes


class SshHostKeyCheck:
    """The host keys that a user trusts for one hop. Nothing is ever added to a known_hosts file.

    Raises:
        DeviceTrouble: a known_hosts file cannot be read.
    """

    def __init__(self, hop: SshHop) -> None:
        self._hop = hop
        files = (*hop.host_key.files, *hop.host_key.of_system)
        try:
            lines = known_host_keys(files, hop.host_key.name.lower())
            # Like ssh: a key known for the host without a port is good for other ports, but never found wrong.
            without_port: tuple[KnownHostKey, ...] = ()
            if hop.port != DEFAULT_PORT and not hop.host_key.is_alias:
                without_port = known_host_keys(files, hop.host.lower())
        except OSError as error:
            message = f"The known hosts cannot be read: {error.strerror} ({error.filename})."
            raise refused(message, "Correct the file's permissions.") from error
        self._revoked = [key for key in (*lines, *without_port) if key.marker == REVOKED]
        self._known = [key for key in lines if not key.marker]
        self._authorities = [key for key in lines if key.marker not in ("", REVOKED)]
        self._without_port = [key for key in without_port if not key.marker]

    def order_algorithms(self, algorithms: Sequence[str]) -> list[str]:
        """The host key algorithms to ask for: first those of known keys, so that the server shows a known one."""
        types = {key.key_type for key in self._known or self._without_port}
        return sorted(algorithms, key=lambda name: (_RSA if name.startswith("rsa-") else name) not in types)

    def check(self, key_type: str, blob: bytes) -> None:
        """Return when the server's key is one that the user trusts.

        Raises:
            DeviceTrouble: it is not known, not the known one, or revoked (REFUSED).
        """
        host_key = self._hop.host_key
        for file in host_key.revoked:
            if is_revoked(file, key_type, blob, host_key.keygen):
                raise self._is_revoked(f"by {file}")
        for key in self._revoked:
            if key.blob == blob:
                raise self._is_revoked(f"by line {key.line} of {key.file}")
        if any(key.blob == blob for key in (*self._known, *self._without_port)):
            return
        shown = f"{_short(key_type)} {fingerprint(blob)}"
        for key in self._known:
            if key.key_type == key_type:
                raise self._changed(key, shown)
        raise self._unknown(key_type, shown)

    def _is_revoked(self, where: str) -> DeviceTrouble:
        return refused(
            f"The host key of {self._hop.place} is revoked {where}.",
            "Do not connect. Ask the host's administrator for a new key.",
        )

    def _changed(self, key: KnownHostKey, shown: str) -> DeviceTrouble:
        forget = f"ssh-keygen -R {shlex.quote(self._hop.host_key.name)} -f {_shell_path(key.file)}"
        return refused(
            f"The host key of {self._hop.place} has changed: it is now {shown}, "
            f"and line {key.line} of {key.file} has {fingerprint(key.blob)}.",
            "Someone may be intercepting the connection. If the device was reinstalled and the new fingerprint is its "
            f"own, remove the old key: {forget}",
        )

    def _unknown(self, key_type: str, shown: str) -> DeviceTrouble:
        hop = self._hop
        file = hop.host_key.files[0]
        if self._known:
            key = self._known[0]
            reason = f"line {key.line} of {key.file} has only a key of another type ({_short(key.key_type)})"
        elif self._authorities:
            key = self._authorities[0]
            reason = f"line {key.line} of {key.file} has a certificate authority for it, which is not supported"
        else:
            reason = f"{file} has no line for {hop.host_key.name}"
        return refused(
            f"The host key of {hop.place} is not known: it is {shown}, and {reason}.",
            f"If the fingerprint is the device's own, trust the key: {self._trust_command(key_type, file)}",
        )

    def _trust_command(self, key_type: str, file: Path) -> str:
        hop = self._hop
        port = "" if hop.port == DEFAULT_PORT else f" -p {hop.port}"
        if not hop.behind and not hop.host_key.is_alias:
            return f"ssh-keyscan{port} -t {_short(key_type).lower()} {shlex.quote(hop.host)} >> {_shell_path(file)}"
        # From here it cannot be scanned, or not under the name it is known by: ssh asks, and adds it.
        alias = f" -o {shlex.quote(f'HostKeyAlias={hop.host_key.name}')}" if hop.host_key.is_alias else ""
        jump = f" -J {shlex.quote(','.join(hop.behind))}" if hop.behind else ""
        files = f" -o {shlex.quote(f'UserKnownHostsFile={file}')}"
        return f"ssh{files}{alias}{jump}{port} {shlex.quote(f'{hop.user}@{hop.host}')} exit"


def _short(key_type: str) -> str:
    """As OpenSSH calls a key type beside a fingerprint, such as ED25519."""
    return "ECDSA" if key_type.startswith("ecdsa-") else key_type.removeprefix("ssh-").upper()


def _shell_path(path: Path) -> str:
    """A path as it can be typed, with ~ for the home folder."""
    try:
        return "~/" + shlex.quote(str(path.relative_to(Path("~").expanduser())))
    except (ValueError, RuntimeError):
        return shlex.quote(str(path))


def known_host_keys(files: Sequence[Path], name: str) -> tuple[KnownHostKey, ...]:
    """The lines that speak of `name` (host, [host]:port or an alias; lower case), in the files' order.

    As for OpenSSH, a file need not exist, and lines that make no sense are passed over.

    Raises:
        OSError: a file is there and cannot be read.
    """
    return tuple(key for file in files for names, key in _entries(file) if _speaks_of(names, name))


def fingerprint(blob: bytes) -> str:
    """A public key's fingerprint as OpenSSH shows it: SHA256 and base64 without padding."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _entries(file: Path) -> Iterator[tuple[str, KnownHostKey]]:
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, 1):
        found = _LINE.match(line.decode(errors="replace"))
        if found is None:
            continue
        marker, names, key_type, encoded = found.groups()
        try:
            blob = base64.b64decode(encoded, validate=True)
        except ValueError:
            continue
        # The type is written twice; a line whose two types differ is damaged.
        if blob[:4] == len(key_type).to_bytes(4, "big") and blob[4:].startswith(key_type.encode()):
            yield names, KnownHostKey(file, number, marker or "", key_type, blob)


def _speaks_of(names: str, name: str) -> bool:
    if names.startswith("|"):
        return _is_hash_of(names, name)
    patterns = names.lower().split(",")
    fitting = {pattern.startswith("!") for pattern in patterns if _fits(pattern.removeprefix("!"), name)}
    return fitting == {False}


def _is_hash_of(hashed: str, name: str) -> bool:
    try:
        _, version, salt, digest = hashed.split("|")
        expected = hmac.digest(base64.b64decode(salt, validate=True), name.encode(), "sha1")
        return version == "1" and hmac.compare_digest(expected, base64.b64decode(digest, validate=True))
    except ValueError:
        return False


def _fits(pattern: str, name: str) -> bool:
    # Not fnmatch: brackets stand for themselves here.
    expression = re.escape(_STARS.sub("*", pattern)).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, name, re.DOTALL) is not None
