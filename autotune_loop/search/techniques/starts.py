"""Where evolution starts beside Halide's samples: the generator's own schedule, and sketches."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from autotune_loop.candidate import Origin
from autotune_loop.search.techniques.technique import Population, Proposal
from autotune_loop.sketches.sketches import sketches


class Starts:
    """Schedules that are made of nothing but the pipeline, the most promising first."""

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        """See `Technique.propose`."""
        if population.own is not None:
            yield Proposal(population.own, moves=(Origin.OWN_SCHEDULE.value,))
        for sketch in sketches(population.names, population.cores):
            yield Proposal(sketch.draft, moves=(sketch.name,))
