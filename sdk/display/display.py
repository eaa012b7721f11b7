"""The one shape of everything that shows a run."""

from __future__ import annotations

from typing import Protocol

from autotune_loop.events import Event
from autotune_loop.run.result import TuneResult
from sdk.display.follow_up import FollowUp


class Display(Protocol):
    """Shows a run as it happens, then its result. `listen` and `stopping` are called from several threads."""

    def listen(self, event: Event) -> None:
        """Show one event."""

    def stopping(self) -> None:
        """Say that the run has been asked to end, and how to end it at once."""

    def close(self) -> None:
        """Give the terminal back, so that what is printed next comes out clean; harmless when called again."""

    def finish(self, result: TuneResult, follow_up: FollowUp) -> None:
        """Show the result; called once, after `close`."""
