"""What can be wrong with a device, as opposed to a schedule."""

from __future__ import annotations

from enum import Enum

from targets.errors import DeviceError


class TroubleKind(Enum):
    """Decides what is done about it: wait and try again, leave the device out, or ask a person."""

    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    LOST = "connection lost"
    TIMEOUT = "timeout"
    PROTOCOL_ERROR = "protocol error"
    FULL = "storage full"
    LEASED = "leased by someone else"
    DRIFTED = "another speed than before"
    OUTLIER = "outlier among the boards"
    BROKEN = "broken"

    @property
    def needs_a_person(self) -> bool:
        """Whether trying again cannot help: a key, a password or a host key must be put right, or the board itself."""
        return self in (TroubleKind.REFUSED, TroubleKind.OUTLIER)


class DeviceTrouble(DeviceError):
    """A DeviceError whose kind says what can be done about it.

    Attributes:
        kind: what is wrong.
    """

    def __init__(self, kind: TroubleKind, message: str, *, next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.kind, self.message, self.next_step)


def _rebuild(kind: TroubleKind, message: str, next_step: str) -> DeviceTrouble:
    return DeviceTrouble(kind, message, next_step=next_step)
