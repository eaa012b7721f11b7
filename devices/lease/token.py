"""Leases taken by hand: the secret that shows a device that its lease is ours, kept until it is released."""

from __future__ import annotations

import json
import math
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from devices.device_key import device_key
from devices.remote_place import RemotePlace
from targets.errors import DeviceError
from targets.process.atomic_write import write_atomically

_TOKEN = re.compile(r"[0-9a-f]{32,64}", re.ASCII)
_LARGEST_FILE_BYTES = 4096


@dataclass(frozen=True)
class LeaseToken:
    """The secret of a lease.

    Attributes:
        token: hexadecimal digits.
        ttl_s: for how long the lease was asked for.
    """

    token: str = ""
    ttl_s: float = 0.0

    def __repr__(self) -> str:
        return f"LeaseToken(ttl_s={self.ttl_s})"


def new_token() -> str:
    """Return a fresh secret."""
    return secrets.token_hex(16)


def read_token(folder: Path, place: RemotePlace) -> LeaseToken | None:
    """Return the secret kept for a slot; None where there is none, or a damaged one."""
    try:
        with _file(folder, place).open("rb") as opened:
            fields = json.loads(opened.read(_LARGEST_FILE_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    token, ttl_s = fields.get("token"), fields.get("ttl_s")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        return None
    if isinstance(ttl_s, bool) or not isinstance(ttl_s, int | float) or not math.isfinite(ttl_s) or ttl_s <= 0:
        return None
    return LeaseToken(token, float(ttl_s))


def member_token(folder: Path) -> str:
    """Return the secret that a member of a farm holds its leases by, the same as long as its folder is there.

    Raises:
        DeviceError: it cannot be written.
    """
    file = folder / "lease-token"
    try:
        known = file.read_text()[:_LARGEST_FILE_BYTES].strip()
    except (OSError, UnicodeDecodeError):
        known = ""
    if _TOKEN.fullmatch(known):
        return known
    made = new_token()
    try:
        write_atomically(file, f"{made}\n".encode(), 0o600)
    except OSError as error:
        raise DeviceError(f"{file} cannot be written ({error.strerror}).") from error
    return made


def keep_token(folder: Path, place: RemotePlace, lease: LeaseToken) -> None:
    """Keep the secret for a slot; only this user can read it.

    Raises:
        DeviceError: it cannot be written.
    """
    fields = {"address": place.address.describe(), "slot": place.slot, "token": lease.token, "ttl_s": lease.ttl_s}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(_file(folder, place), (json.dumps(fields) + "\n").encode(), 0o600)
    except OSError as error:
        raise DeviceError(f"The folder {folder} cannot be written ({error.strerror}).") from error


def forget_token(folder: Path, place: RemotePlace) -> None:
    """Drop the secret of a slot; quiet when there is none.

    Raises:
        DeviceError: it cannot be removed.
    """
    try:
        _file(folder, place).unlink(missing_ok=True)
    except OSError as error:
        raise DeviceError(f"The folder {folder} cannot be written ({error.strerror}).") from error


def _file(folder: Path, place: RemotePlace) -> Path:
    return folder / f"{device_key(place.address)}-{place.slot}.json"
