"""How runs share devices: start-time fair queueing by device seconds."""

from __future__ import annotations

import threading
from enum import Enum

_FIRST_ESTIMATE_S = 1.0
_NEWEST_SHARE = 0.2


class RunPriority(Enum):
    """What a user gives a run; one of a higher priority gets twice the device time."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"

    @property
    def weight(self) -> float:
        """Its share as against the others'."""
        return {RunPriority.LOW: 1.0, RunPriority.NORMAL: 2.0, RunPriority.HIGH: 4.0}[self]


class FairShare:
    """The virtual time of one run: the device seconds that it has had, over its weight.

    A task's start tag is that time and what the run has asked for before it. Of all that waits, the task with the least
    start tag comes first. A run that had nothing to do goes
    on where the others are, so that nobody saves time up. Used by several threads.

    Args:
        weight: of the run's priority.
    """

    def __init__(self, weight: float) -> None:
        self._weight = weight
        self._lock = threading.Lock()
        self._next_start_s = 0.0
        self._charged_s = 0.0
        self._floor_s = 0.0
        self._estimate_s = _FIRST_ESTIMATE_S
        self._under_way = 0

    @property
    def virtual_s(self) -> float:
        """Device seconds that it has had, over weight: what it has only asked for is nothing to the others."""
        return self._next_start_s - self._charged_s / self._weight

    @property
    def estimate_s(self) -> float:
        """What a task of the run takes, as far as is known."""
        return self._estimate_s

    @property
    def under_way(self) -> int:
        """Tasks that were submitted and are not done."""
        return self._under_way

    def others_are_at(self, floor_s: float) -> None:
        """The least virtual time of the other runs that have work under way."""
        with self._lock:
            self._floor_s = floor_s
            if self._under_way == 0:
                self._next_start_s = max(self._next_start_s, floor_s)

    def submitted(self, *, is_brief: bool = False) -> tuple[float, float]:
        """Count a task in; returns its start tag, and what it is charged until its time is known.

        Args:
            is_brief: it is no measurement, and takes no time to speak of.
        """
        expected_s = 0.0 if is_brief else self._estimate_s
        with self._lock:
            if self._under_way == 0:
                self._next_start_s = max(self._next_start_s, self._floor_s)
            start_s = self._next_start_s
            self._under_way += 1
            self._next_start_s += expected_s / self._weight
            self._charged_s += expected_s
            return start_s, expected_s

    def done(self, charged_s: float, took_s: float | None) -> None:
        """A task has ended.

        Args:
            charged_s: what `submitted` gave.
            took_s: what it did take; None for one that was lost, which costs nothing.
        """
        with self._lock:
            self._under_way -= 1
            self._charged_s -= charged_s
            self._next_start_s += ((took_s or 0.0) - charged_s) / self._weight
            if took_s is not None and charged_s:
                self._estimate_s += _NEWEST_SHARE * (took_s - self._estimate_s)
