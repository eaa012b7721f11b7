"""What a technique is given, and what it gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.search.models.population import Population


@dataclass(frozen=True)
class Proposal:
    """A schedule that a technique wants to be timed.

    Attributes:
        parents, moves: see `SchedulePoint`.
    """

    draft: Draft
    parents: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()


class Technique(Protocol):
    """A way of proposing schedules. What it proposes follows from the population and the source of chance alone.

    A package gives its own by an entry point of the group `halide_autotune.techniques`.
    """

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        """Yield proposals, the most promising first; more than `count`, because some may be known already.

        Args:
            source: of all chance, so that equal runs propose alike.
        """
