"""OpenSSH's known_hosts files: which keys a host may have."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

REVOKED = "@revoked"
CERTIFICATE_AUTHORITY = "@cert-authority"
_MARKERS = (REVOKED, CERTIFICATE_AUTHORITY)
_LONGEST_LINE_CHARACTERS = 2**16
_STARS = re.compile(r"\*+")


@dataclass(frozen=True)
class KnownHostKey:
    """One line of a known_hosts file.

    Attributes:
        line: its number, from 1.
        marker: REVOKED, CERTIFICATE_AUTHORITY, or empty for a key to trust.
        key_type: such as ssh-ed25519.
        blob: the public key as SSH sends it.
    """

    file: Path
    line: int
    marker: str
    key_type: str
    blob: bytes


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
        fields = line.decode(errors="replace").split()
        if not fields or fields[0].startswith("#") or len(line) > _LONGEST_LINE_CHARACTERS:
            continue
        marker = fields.pop(0) if fields[0].startswith("@") else ""
        if len(fields) < 3 or (marker and marker not in _MARKERS):
            continue
        names, key_type, encoded = fields[:3]
        try:
            blob = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            continue
        # The type is written twice; a line whose two types differ is damaged.
        if blob[:4] == len(key_type).to_bytes(4, "big") and blob[4:].startswith(key_type.encode()):
            yield names, KnownHostKey(file, number, marker, key_type, blob)


def _speaks_of(names: str, name: str) -> bool:
    if names.startswith("|"):
        return _is_hash_of(names, name)
    found = False
    for pattern in names.lower().split(","):
        if pattern.startswith("!"):
            if _fits(pattern[1:], name):
                return False
        elif _fits(pattern, name):
            found = True
    return found


def _is_hash_of(hashed: str, name: str) -> bool:
    _, version, *encoded = hashed.split("|")
    if version != "1" or len(encoded) != 2:
        return False
    try:
        salt, digest = (base64.b64decode(text, validate=True) for text in encoded)
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)


def _fits(pattern: str, name: str) -> bool:
    # Not fnmatch: brackets stand for themselves here.
    expression = re.escape(_STARS.sub("*", pattern)).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, name, re.DOTALL) is not None
