"""How long the parts of talking to an Android device may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AdbLimits:
    """Times after which a device counts as unreachable or silent.

    Attributes:
        connect_s: for the connection, and for each answer while it is made.
        silence_s: without a single byte while the device owes an answer.
        allow_s: for a person to tap Allow on the device.
        poll_s: how often a caller that waits for output is told that nothing came.
    """

    connect_s: float = 10.0
    silence_s: float = 30.0
    allow_s: float = 60.0
    poll_s: float = 0.2
