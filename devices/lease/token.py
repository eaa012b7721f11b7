"""The tokens that prove to a device that a lease is ours: of leases taken by hand, of a farm's worker, of a run."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from halide_autotune.devices.record_file import delete_record, read_record, record_file, write_record
from halide_autotune.devices.remote_place import RemotePlace
from halide_autotune.targets.errors import DeviceError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.checks import matching, number

_TOKEN = "[0-9a-f]{32,64}"
_LONGEST_TOKEN_CHARACTERS = 64


@dataclass(frozen=True)
class LeaseToken:
    """The token of a lease taken by hand.

    Attributes:
        token: hexadecimal digits; a secret.
        ends_unix_s: when the lease ends unless it is taken again.
    """

    token: Annotated[str, matching(_TOKEN, "32 to 64 hexadecimal digits")] = field(repr=False)
    ends_unix_s: Annotated[float, number(0.0, 1e12)]

    @property
    def left_s(self) -> float:
        """Seconds until it ends; 0 once it has."""
        return max(0.0, self.ends_unix_s - time.time())


def new_token() -> str:
    """Return a fresh token."""
    return secrets.token_hex(16)


def read_token(folder: Path, place: RemotePlace) -> LeaseToken | None:
    """Return the token kept for a slot; None when there is none, or it is damaged."""
    return read_record(_file(folder, place), LeaseToken)


def keep_token(folder: Path, place: RemotePlace, lease: LeaseToken) -> None:
    """Keep the token for a slot; only this user can read it.

    Raises:
        DeviceError: it cannot be written.
    """
    fields = {"address": place.address.describe(), "slot": place.slot, "token": lease.token}
    write_record(_file(folder, place), {**fields, "ends_unix_s": lease.ends_unix_s}, private=True)


def forget_token(folder: Path, place: RemotePlace) -> None:
    """Delete the token of a slot if there is one.

    Raises:
        DeviceError: it cannot be deleted.
    """
    delete_record(_file(folder, place))


def lasting_token(folder: Path) -> str:
    """Return the token of a farm's worker or of a run, which stays the same as long as its folder exists.

    Raises:
        DeviceError: it cannot be written.
    """
    file = folder / "lease-token"
    try:
        known = file.read_text()[: _LONGEST_TOKEN_CHARACTERS + 1].strip()
    except (OSError, UnicodeDecodeError):
        known = ""
    if re.fullmatch(_TOKEN, known):
        return known
    made = new_token()
    with os_error_as(DeviceError, f"{file} cannot be written"):
        write_atomically(file, f"{made}\n".encode(), 0o600)
    return made


def _file(folder: Path, place: RemotePlace) -> Path:
    return record_file(folder, place.address, f"-{place.slot}")
