"""How to go on after a run."""

from __future__ import annotations

from dataclasses import dataclass


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
