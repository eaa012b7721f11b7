"""The record of a device that was found unhealthy, kept until it passes its checks again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.devices.device_trouble import TroubleKind
from halide_autotune.devices.record_file import delete_record, read_record, record_file, write_record
from halide_autotune.devices.remote_place import Address
from halide_autotune.targets.values.checks import number, one_line, one_of, whole_number
from halide_autotune.targets.values.records import plain
from halide_autotune.targets.values.texts import printable

_FIRST_PAUSE_S = 60.0
_LONGEST_PAUSE_S = 3600.0
_LONGEST_MESSAGE_CHARACTERS = 1000
_kind_name = one_of(TroubleKind.__members__)
_unix_s = number(0, 2.0**40)


def _kind(value: object) -> TroubleKind:
    return TroubleKind[_kind_name(value)]


@dataclass(frozen=True)
class HealthRecord:
    """Why a device is left out, and when to look at it again.

    Attributes:
        kind: what is wrong.
        message: the same for people, from the last failure.
        failures: in a row.
        since_unix_s, next_check_unix_s: seconds since 1970.
    """

    kind: Annotated[TroubleKind, _kind]
    message: Annotated[str, one_line]
    failures: Annotated[int, whole_number(1, 10**6)]
    since_unix_s: Annotated[float, _unix_s]
    next_check_unix_s: Annotated[float, _unix_s]

    def is_paused(self, now_unix_s: float) -> bool:
        """Whether it is too early to look at it again; a clock that was set back makes no pause longer."""
        begun = self.since_unix_s <= now_unix_s and self.next_check_unix_s - now_unix_s <= _LONGEST_PAUSE_S
        return begun and now_unix_s < self.next_check_unix_s


def read_health(folder: Path, address: Address) -> HealthRecord | None:
    """Return the device's record; None when it is healthy as far as is known.

    A damaged record counts as none: the next failure writes it again.
    """
    return read_record(record_file(folder, address), HealthRecord)


def record_unhealthy(
    folder: Path,
    address: Address,
    message: str,
    now_unix_s: float,
    kind: TroubleKind = TroubleKind.BROKEN,
) -> HealthRecord:
    """Record that the device has failed. Each failure in a row doubles the pause before the next look, up to an hour.

    Args:
        message: what is wrong, for people.
        now_unix_s: seconds since 1970.

    Raises:
        DeviceError: the record cannot be written.
    """
    before = read_health(folder, address)
    failures = 1 if before is None else before.failures + 1
    health = HealthRecord(
        kind=kind,
        message=printable(message)[:_LONGEST_MESSAGE_CHARACTERS],
        failures=failures,
        since_unix_s=now_unix_s if before is None else before.since_unix_s,
        next_check_unix_s=now_unix_s + min(_FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10), _LONGEST_PAUSE_S),
    )
    fields = {"address": address.describe(), **plain(health), "kind": kind.name}
    write_record(record_file(folder, address), fields)
    return health


def clear_health(folder: Path, address: Address) -> None:
    """Delete the device's record if there is one.

    Raises:
        DeviceError: it cannot be deleted.
    """
    delete_record(record_file(folder, address))
