"""A thread that does something now and then, until it is told to end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable


class LeaseHeartbeat:
    """Calls `beat` every `every_s` seconds, in a thread of its own.

    What `beat` raises is dropped: the next operation of the device meets the same trouble, where somebody hears it.
    """

    def __init__(self, beat: Callable[[], None], every_s: float) -> None:
        self._beat = beat
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease-heartbeat", daemon=True)
        self._thread.start()

    def end(self, patience_s: float) -> None:
        """No beat begins any more; waits up to `patience_s` for the end of one under way."""
        self._ended.set()
        self._thread.join(patience_s)

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            with contextlib.suppress(Exception):
                self._beat()
