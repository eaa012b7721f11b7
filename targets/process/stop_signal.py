"""A flag that threads can wait for together with file descriptors."""

from __future__ import annotations

import os
import threading


class StopSignal:
    """Set once, from any thread or a signal handler; then `fileno()` is readable, for `select` and `poll`."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._read_fd, self._write_fd = os.pipe()

    def set(self) -> None:
        """Set the flag; it stays set."""
        if not self._event.is_set():
            self._event.set()
            os.write(self._write_fd, b"x")

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s`; return whether the flag is set."""
        return self._event.wait(timeout_s)

    def fileno(self) -> int:
        """Return a descriptor that is readable once the flag is set."""
        return self._read_fd

    def __del__(self) -> None:
        os.close(self._read_fd)
        os.close(self._write_fd)
