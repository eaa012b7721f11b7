"""Leases taken by hand: the secret that shows a device that its lease is ours, kept until it is released."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from devices.device_key import device_key
from devices.remote_place import RemotePlace
from targets.errors import DeviceError
from targets.process.atomic_write import write_atomically
from targets.values.checks import matching, number
from targets.values.records import Source, record

_TOKEN = "[0-9a-f]{32,64}"
_LARGEST_FILE_BYTES = 4096


@dataclass(frozen=True)
class LeaseToken:
    """The secret of a lease.

    Attributes:
        token: hexadecimal digits.
        ttl_s: for how long the lease was asked for.
    """

    token: Annotated[str, matching(_TOKEN, "a lease's secret")]
    ttl_s: Annotated[float, number(0.001)]

    def __repr__(self) -> str:
        return f"LeaseToken(ttl_s={self.ttl_s})"


def new_token() -> str:
    """Return a fresh secret."""
    return secrets.token_hex(16)


def read_token(folder: Path, place: RemotePlace) -> LeaseToken | None:
    """Return the secret kept for a slot; None where there is none, or a damaged one."""
    file = _file(folder, place)
    source = Source(file, DeviceError)
    try:
        text = source.read(file, most_bytes=_LARGEST_FILE_BYTES)
        return source.check(record(LeaseToken, passes_unknown=True), source.json(text))
    except (FileNotFoundError, DeviceError):
        return None


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
    if re.fullmatch(_TOKEN, known):
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
