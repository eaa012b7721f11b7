"""Where evolution starts beside Halide's samples: the generator's own schedule, and sketches."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from autotune_loop.candidate import Origin
from autotune_loop.draft.names import PipelineNames
from autotune_loop.search.techniques.technique import Population, Proposal
from autotune_loop.sketches.sketches import Sketch, sketches


class Starts:
    """Schedules that are made of nothing but the pipeline, the most promising first."""

    def __init__(self) -> None:
        # All take as long to make as a schedule to compile, and every batch asks for them.
        self._sketches: dict[int, tuple[PipelineNames, tuple[Sketch, ...]]] = {}

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        """See `Technique.propose`."""
        if population.own is not None:
            yield Proposal(population.own, moves=(Origin.OWN_SCHEDULE.value,))
        names = population.names
        if id(names) not in self._sketches:
            # The names are kept, too, so that nothing else gets their ID.
            self._sketches[id(names)] = names, sketches(names, population.cores)
        for sketch in self._sketches[id(names)][1]:
            yield Proposal(sketch.draft, moves=(sketch.name,))
