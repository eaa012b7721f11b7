"""Tells a run's listener when it has to wait in its farm's queue."""

from __future__ import annotations

import time

from autotune_loop.events import FarmQueue, Listener

_WORTH_TELLING_S = 2.0


class QueueWatch:
    """Says so after two seconds of waiting, then when the position changes, and when it is over."""

    def __init__(self, listen: Listener) -> None:
        self._listen = listen
        self._since_s: float | None = None
        self._told: int | None = None

    def stands_at(self, position: int, start_s: float) -> None:
        """The run's place just now; called twice a second.

        Args:
            start_s: seconds until its next measurement begins.
        """
        now_s = time.monotonic()
        if position == 0:
            self._since_s = None
            if self._told is not None:
                self._told = None
                self._listen(FarmQueue(0, 0.0))
            return
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s - self._since_s >= _WORTH_TELLING_S and position != self._told:
            self._told = position
            self._listen(FarmQueue(position, start_s))
