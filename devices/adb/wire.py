"""The protocol between ADB's packets and what carries them."""

from __future__ import annotations

from typing import Protocol


class AdbWire(Protocol):
    """A connected TCP socket or USB interface. After an exception only `close` may be called."""

    def read(self, size_bytes: int, wait_s: float) -> bytes:
        """Up to `size_bytes` bytes; b'' when none come within `wait_s`.

        Raises:
            DeviceTrouble: LOST, the other end is gone.
        """
        ...

    def write(self, header: bytes, payload: bytes) -> None:
        """Send one packet, whole.

        Raises:
            DeviceTrouble: LOST, the other end is gone; TIMEOUT, it takes nothing any more.
        """
        ...

    def close(self) -> None:
        """Let go; quiet when done before."""
        ...
