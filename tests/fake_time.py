"""For tests: the time of deadlines, which goes on only when it is told to."""

from __future__ import annotations


class FakeTime:
    """The seconds since a run began."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s
