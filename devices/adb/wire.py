"""What carries ADB's packets, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class AdbLimits:
    """Times after which a device counts as unreachable or silent.

    Attributes:
        connect_s: for the connection, and for each answer while it is made.
        silence_s: without a single byte while the device owes an answer.
        allow_s: for a person to tap Allow on the device.
        poll_s: how often a reader learns that nothing came.
    """

    connect_s: float = 10.0
    silence_s: float = 30.0
    allow_s: float = 60.0
    poll_s: float = 0.2


class AdbWire(Protocol):
    """A connected TCP socket or USB interface. After an exception only `close` may be called."""

    def read(self, size_bytes: int, wait_s: float) -> bytes:
        """Return up to `size_bytes` bytes; b'' when none come within `wait_s`.

        Raises:
            DeviceTrouble: LOST, the other end is gone.
        """
        ...

    def write(self, header: bytes, payload: bytes) -> None:
        """Send one packet, whole.

        Raises:
            DeviceTrouble: LOST, the other end is gone; TIMEOUT, it takes no more data.
        """
        ...

    def close(self) -> None:
        """Close the wire; does nothing the second time."""
        ...
