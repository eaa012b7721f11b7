"""What is remembered about a device that was found unhealthy, until it passes its checks again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from devices.device_key import device_key
from devices.device_trouble import TroubleKind
from devices.remote_place import AdbAddress, SshAddress
from targets.errors import DeviceError
from targets.process.atomic_write import write_atomically
from targets.values.checks import number, one_line, one_of, whole_number
from targets.values.records import Source, plain, record

_FIRST_PAUSE_S = 60.0
_LONGEST_PAUSE_S = 3600.0
_LARGEST_FILE_BYTES = 64 * 1024
_LONGEST_MESSAGE_CHARACTERS = 1000

_unix_s = number(0, 2**40)


def _trouble_kind(value: object) -> TroubleKind:
    return TroubleKind[one_of(TroubleKind.__members__)(value)]


@dataclass(frozen=True)
class HealthRecord:
    """Why a device is left out, and when it is worth another look.

    Attributes:
        kind: what is wrong.
        message: the same for people, as it was last seen.
        failures: how often in a row it was found so.
        since_unix_s, next_check_unix_s: seconds since 1970.
    """

    kind: Annotated[TroubleKind, _trouble_kind]
    message: Annotated[str, one_line]
    failures: Annotated[int, whole_number(1, 10**6)]
    since_unix_s: Annotated[float, _unix_s]
    next_check_unix_s: Annotated[float, _unix_s]


def read_health(folder: Path, address: SshAddress | AdbAddress) -> HealthRecord | None:
    """Return what is remembered; None for a device that is healthy as far as is known.

    A record that is damaged counts as none: it holds nothing that the next failure does not tell again.
    """
    file = _file(folder, address)
    source = Source(file, DeviceError)
    try:
        text = source.read(file, most_bytes=_LARGEST_FILE_BYTES)
        return source.check(record(HealthRecord, passes_unknown=True), source.json(text))
    except (FileNotFoundError, DeviceError):
        return None


def record_unhealthy(
    folder: Path,
    address: SshAddress | AdbAddress,
    message: str,
    now_unix_s: float,
    kind: TroubleKind = TroubleKind.BROKEN,
) -> HealthRecord:
    """Remember that the device has failed; with each failure in a row the next look is put off longer, up to an hour.

    Args:
        message: what is wrong, for people.
        now_unix_s: seconds since 1970.

    Raises:
        DeviceError: the record cannot be written.
    """
    before = read_health(folder, address)
    failures = 1 if before is None else before.failures + 1
    pause_s = min(_FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10), _LONGEST_PAUSE_S)
    health = HealthRecord(
        kind=kind,
        message=_one_line(message),
        failures=failures,
        since_unix_s=now_unix_s if before is None else before.since_unix_s,
        next_check_unix_s=now_unix_s + pause_s,
    )
    fields = {"address": address.describe(), **plain(health), "kind": health.kind.name}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(_file(folder, address), (json.dumps(fields, indent=2) + "\n").encode())
    except OSError as error:
        raise DeviceError(f"The folder {folder} cannot be written ({error.strerror}).") from error
    return health


def clear_health(folder: Path, address: SshAddress | AdbAddress) -> None:
    """Forget what was remembered; quiet when that is nothing.

    Raises:
        DeviceError: the record cannot be removed.
    """
    try:
        _file(folder, address).unlink(missing_ok=True)
    except OSError as error:
        raise DeviceError(f"The folder {folder} cannot be written ({error.strerror}).") from error


def _one_line(text: str) -> str:
    line = " ".join(text.split())[:_LONGEST_MESSAGE_CHARACTERS]
    return "".join(character if character.isprintable() else "?" for character in line)


def _file(folder: Path, address: SshAddress | AdbAddress) -> Path:
    return folder / f"{device_key(address)}.json"
