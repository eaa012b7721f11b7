"""What can be wrong with a device, as opposed to a schedule."""

from __future__ import annotations

from enum import Enum

from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.values.texts import printable

_FULL_WORDS = ("no space left", "quota exceeded", "file too large")
_REASON_CHARACTERS = 200
MAKE_ROOM = "Free some storage on the device (df -h shows what is left), or give it another folder."


class TroubleKind(Enum):
    """Decides what happens next: try again, leave the device out, or ask a person."""

    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    LOST = "connection lost"
    TIMEOUT = "timeout"
    PROTOCOL_ERROR = "protocol error"
    FULL = "storage full"
    LEASED = "leased by someone else"
    DRIFTED = "speed changed"
    OUTLIER = "outlier"
    BROKEN = "broken"

    @property
    def needs_a_person(self) -> bool:
        """Whether trying again cannot help: a key, a password, a host key or the board itself needs attention."""
        return self in (TroubleKind.REFUSED, TroubleKind.OUTLIER)

    @property
    def ends_connection(self) -> bool:
        """Whether nobody knows what the other end will send next, so that the connection must be closed."""
        return self in (TroubleKind.LOST, TroubleKind.TIMEOUT, TroubleKind.PROTOCOL_ERROR)

    @property
    def may_pass(self) -> bool:
        """Whether a new connection may help."""
        return self is TroubleKind.UNREACHABLE or self.ends_connection


class DeviceTrouble(DeviceError):
    """A DeviceError whose kind says what can be done about it.

    Attributes:
        kind: what is wrong.
    """

    def __init__(self, kind: TroubleKind, message: str, *, next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.kind = kind


def says_full(reason: str) -> bool:
    """Whether a device's reason is that it has no room left."""
    return any(words in reason.lower() for words in _FULL_WORDS)


def transfer_failure(device: str, path: str, complaint: bytes) -> DeviceTrouble:
    """Return the trouble behind a device's complaint about the transfer of a file: FULL, else BROKEN."""
    reason = printable(complaint.decode("utf-8", "replace"))[:_REASON_CHARACTERS]
    if says_full(reason):
        return DeviceTrouble(
            TroubleKind.FULL,
            f"{device} has no room for {path}: {reason}.",
            next_step=MAKE_ROOM,
        )
    return DeviceTrouble(
        TroubleKind.BROKEN,
        f"{device} cannot transfer {path}: {reason}.",
        next_step="Look at the path on the device, or give the device another folder in the inventory.",
    )
