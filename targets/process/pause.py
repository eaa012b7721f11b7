"""A child process that gives way to somebody who wants its cores alone, and goes on afterwards."""

from __future__ import annotations

from typing import Protocol

from halide_autotune.targets.process.stop_signal import StopSignal


class Pause(Protocol):
    """Tells when a child is to stand still."""

    def fileno(self) -> int:
        """A descriptor that is readable while that is asked."""

    def give_way(self, stop: StopSignal | None) -> None:
        """Let go of the cores, once the child stands still, and wait until they can be had again, or `stop` is set."""
