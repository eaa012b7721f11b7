"""A point in time that is carried through an operation."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """Monotonic time by which something must have ended; infinite when there is no limit."""

    at_s: float

    @classmethod
    def after(cls, duration_s: float | None) -> Deadline:
        """The deadline `duration_s` from now; None never comes."""
        return cls(math.inf if duration_s is None else time.monotonic() + duration_s)

    def share(self, share: float) -> Deadline:
        """The point at which that share of the time left from now is over."""
        return Deadline(time.monotonic() + share * self.left_s)

    @property
    def left_s(self) -> float:
        """Seconds left, not below zero."""
        return max(0.0, self.at_s - time.monotonic())

    def within(self, margin_s: float) -> bool:
        """True when no more than `margin_s` is left."""
        return self.left_s <= margin_s
