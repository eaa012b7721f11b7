"""What is remembered about a device that was found unhealthy, until it passes its checks again."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from devices.device_key import device_key
from devices.device_trouble import TroubleKind
from devices.remote_place import AdbAddress, SshAddress
from targets.errors import DeviceError
from targets.process.atomic_write import write_atomically

_FIRST_PAUSE_S = 60.0
_LONGEST_PAUSE_S = 3600.0
_LARGEST_FILE_BYTES = 64 * 1024
_LONGEST_MESSAGE_CHARACTERS = 1000
_MOST_FAILURES = 10**6
_LATEST_UNIX_S = 2.0**40


@dataclass(frozen=True)
class HealthRecord:
    """Why a device is left out, and when it is worth another look.

    Attributes:
        kind: what is wrong.
        message: the same for people, as it was last seen.
        failures: how often in a row it was found so.
        since_unix_s, next_check_unix_s: seconds since 1970.
    """

    kind: TroubleKind
    message: str
    failures: int
    since_unix_s: float
    next_check_unix_s: float


def read_health(folder: Path, address: SshAddress | AdbAddress) -> HealthRecord | None:
    """Return what is remembered; None for a device that is healthy as far as is known.

    A record that is damaged counts as none: it holds nothing that the next failure does not tell again.
    """
    try:
        with _file(folder, address).open("rb") as opened:
            data = opened.read(_LARGEST_FILE_BYTES + 1)
        fields = json.loads(data.decode("utf-8")) if len(data) <= _LARGEST_FILE_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    return _record(fields) if isinstance(fields, dict) else None


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
    record = HealthRecord(
        kind=kind,
        message=_one_line(message),
        failures=failures,
        since_unix_s=now_unix_s if before is None else before.since_unix_s,
        next_check_unix_s=now_unix_s + pause_s,
    )
    fields = {
        "address": address.describe(),
        "kind": record.kind.name,
        "message": record.message,
        "failures": record.failures,
        "since_unix_s": record.since_unix_s,
        "next_check_unix_s": record.next_check_unix_s,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(_file(folder, address), (json.dumps(fields, indent=2) + "\n").encode())
    except OSError as error:
        raise DeviceError(f"The folder {folder} cannot be written ({error.strerror}).") from error
    return record


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


def _record(fields: dict[str, object]) -> HealthRecord | None:
    kind, message, failures = fields.get("kind"), fields.get("message"), fields.get("failures")
    since_s, next_s = fields.get("since_unix_s"), fields.get("next_check_unix_s")
    if not isinstance(kind, str) or kind not in TroubleKind.__members__:
        return None
    if not isinstance(message, str) or not message.isprintable() or len(message) > _LONGEST_MESSAGE_CHARACTERS:
        return None
    if isinstance(failures, bool) or not isinstance(failures, int) or not 1 <= failures <= _MOST_FAILURES:
        return None
    if not _is_time(since_s) or not _is_time(next_s):
        return None
    return HealthRecord(TroubleKind[kind], message, failures, float(str(since_s)), float(str(next_s)))


def _is_time(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value < _LATEST_UNIX_S
    )
