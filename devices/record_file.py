"""Small JSON files about a device, kept on this machine under the device's address."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from halide_autotune.devices.remote_place import AdbAddress, Address, SshAddress
from halide_autotune.targets.errors import DeviceError, SdkError
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.records import Source, record

T = TypeVar("T")

_LARGEST_FILE_BYTES = 64 * 1024


def record_file(folder: Path, address: Address, suffix: str = "") -> Path:
    """Return the file for a device: the same one under any name and in any inventory."""
    ways: list[str | None] = []
    if isinstance(address, SshAddress):
        ways = [*address.jump]
    elif isinstance(address, AdbAddress):
        ways = [address.serial]
    parts = [type(address).__name__, address.describe(), *ways]
    return folder / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}{suffix}.json"


def read_record(file: Path, kind: type[T]) -> T | None:
    """Return what the file says as a dataclass; None when it is missing, damaged or has a wrong value."""
    source = Source(file, DeviceError)
    try:
        fields = source.json(source.read(file, most_bytes=_LARGEST_FILE_BYTES))
        return source.check(record(kind, passes_unknown=True), fields)
    except (OSError, SdkError):
        return None


def write_record(file: Path, fields: Mapping[str, object], *, private: bool = False) -> None:
    """Write the file, and its folder if it is missing.

    Args:
        private: only this user can read them.

    Raises:
        DeviceError: the file cannot be written.
    """
    try:
        file.parent.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
        write_atomically(file, (json.dumps(fields, indent=2) + "\n").encode(), 0o600 if private else 0o644)
    except OSError as error:
        raise _unwritable(file, error) from error


def delete_record(file: Path) -> None:
    """Delete the file if it exists.

    Raises:
        DeviceError: the file cannot be deleted.
    """
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> DeviceError:
    return DeviceError(
        f"{file} cannot be written ({error.strerror}).", next_step=f"Check the permissions of {file.parent}."
    )
