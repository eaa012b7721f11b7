"""Where evolution starts beside Halide's samples: what is in use today, what earlier runs have found, and sketches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.techniques.technique import Proposal
from halide_autotune.autotune_loop.sketches.sketches import Sketch, sketches


class Starts:
    """Schedules that this run has not made of others, the most promising first."""

    def __init__(self) -> None:
        # All take as long to make as a schedule to compile: they are made once, and as late as they are asked for.
        self._sketches: dict[int, _Sketches] = {}

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        """See `Technique.propose`."""
        if population.in_use is not None:
            yield Proposal(population.in_use.draft, moves=(population.in_use.origin.value,))
        for draft in population.known:
            yield Proposal(draft, moves=(Origin.HISTORY.value,))
        for draft in population.siblings:
            yield Proposal(draft, moves=("of another size",))
        names = population.names
        if id(names) not in self._sketches:
            self._sketches[id(names)] = _Sketches(names, sketches(names, population.cores))
        for sketch in self._sketches[id(names)].all():
            yield Proposal(sketch.draft, moves=(sketch.name,))


@dataclass
class _Sketches:
    """Those of a pipeline.

    Attributes:
        names: kept so that nothing else gets their ID.
    """

    names: PipelineNames
    to_come: Iterator[Sketch]
    made: list[Sketch] = field(default_factory=list)

    def all(self) -> Iterator[Sketch]:
        yield from self.made
        for sketch in self.to_come:
            self.made.append(sketch)
            yield sketch
