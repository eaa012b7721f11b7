"""The one shape of everything that shows a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from autotune_loop.events import Event
from autotune_loop.run.result import TuneResult

STOPPING_MESSAGE = "stopping; press Ctrl-C again to stop at once"


@dataclass(frozen=True)
class FollowUp:
    """Command lines for a shell.

    Attributes:
        build: builds with the winner of each argument set, in their order; None where there is no winner.
        resume: goes on with the run; None when that would find nothing new.
        look: shows the run; None where nothing was timed.
        ship: writes the winners with their provenance; None where there is none.
    """

    build: tuple[str | None, ...]
    resume: str | None
    look: str | None = None
    ship: str | None = None


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
