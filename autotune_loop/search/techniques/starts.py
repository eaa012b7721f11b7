"""Where evolution starts beside Halide's samples: the generator's own schedule, and sketches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from autotune_loop.candidate import Origin
from autotune_loop.search.techniques.technique import Population, Proposal
from autotune_loop.sketches.sketches import sketches


@dataclass(frozen=True)
class Starts:
    """Schedules that are made of nothing but the pipeline, the most promising first."""

    origin: Origin = Origin.SKETCH

    def propose(self, population: Population, count: int, source: Random) -> Sequence[Proposal]:
        """See `Technique.propose`."""
        own = [] if population.own is None else [Proposal(population.own, moves=(Origin.OWN_SCHEDULE.value,))]
        made = sketches(population.names, population.cores)
        return [*own, *(Proposal(sketch.draft, moves=(sketch.name,)) for sketch in made)]
