"""Pattern search on the numbers of the fastest schedules: each alone, what has helped together, and further that way.

Hooke and Jeeves, "Direct search" solution of numerical and statistical problems, 1961: exploratory moves about a base,
and pattern moves along what they have gained. Here a whole batch is timed at once. So the steps from a base are
proposed together; those that made a schedule faster are joined in the next batch. All of it follows from what was
timed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from halide_autotune.autotune_loop.draft.factors import FactorPlace, factors_of, largest_factor, with_factors
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.moves.mutation import Mutation
from halide_autotune.autotune_loop.search.models.population import Population, Tried
from halide_autotune.autotune_loop.search.models.population_model import PopulationModels
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Proposal

# Schedules that differ in more than numbers, the fastest first.
_BASES, _SLOWEST_BASE = 4, 1.5
_LARGE_STEPS, _SMALL_STEPS = (2.0, 1 / 2), (3 / 2, 2 / 3)
# A step has helped if it made a schedule this much faster.
_FASTER = 0.98
# Of the steps of one number so many are looked at.
_STEPS_PER_WANTED = 6
_MOVE = "factor"

Factors = Mapping[FactorPlace, int]


@dataclass(frozen=True)
class _Base:
    """A schedule that was timed."""

    tried: Tried

    @cached_property
    def factors(self) -> Factors:
        return factors_of(self.tried.draft)

    @cached_property
    def skeleton(self) -> Draft:
        """All but the numbers."""
        return with_factors(self.tried.draft, dict.fromkeys(self.factors, 1))

    def changes_of(self, child: _Base) -> Factors:
        """The numbers of a schedule of this skeleton that are others."""
        return {place: factor for place, factor in child.factors.items() if factor != self.factors[place]}


# A parent and its faster child.
_Gain = tuple[_Base, _Base]


class PatternSearch:
    """Steps of the numbers of the fastest schedules."""

    def __init__(self, models: PopulationModels | None = None, starts: Starts | None = None) -> None:
        self._models = models or PopulationModels()
        self._starts = starts or Starts()

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        """See `Technique.propose`. Before anything is timed, what the search starts from."""
        if not population.tried:
            yield from self._starts.propose(population, count, source)
            return
        mutation = Mutation(population.names, population.busy)
        for family in _families(population.tried):
            base, gains = family[0], _gains(family)
            structure = DraftStructure(base.tried.draft, population.names)
            for factors in (*_further(base, gains), *_joined(base, gains)):
                if _all_fit(structure, factors):
                    yield from _proposals(base, [factors], mutation)
            steps = _single_steps(family, structure, source)[: _STEPS_PER_WANTED * count]
            yield from self._ordered([*_proposals(base, steps, mutation)], population, count)

    def _ordered(self, steps: Sequence[Proposal], population: Population, count: int) -> Iterator[Proposal]:
        """As the model of the population orders them, if there is one."""
        model = self._models.fitted(population) if steps else None
        if model is None:
            yield from steps
            return
        for place in model.ranking([step.draft for step in steps], count):
            yield steps[place]


def _families(tried: Sequence[Tried]) -> list[list[_Base]]:
    """The schedules of each skeleton, the fastest first, of those skeletons that are not too slow."""
    families: list[list[_Base]] = []
    for one in tried:
        base = _Base(one)
        family = next((each for each in families if each[0].skeleton == base.skeleton), None)
        if family is not None:
            family.append(base)
        elif len(families) < _BASES and one.time_ms <= _SLOWEST_BASE * tried[0].time_ms:
            families.append([base])
    return families


def _gains(family: Sequence[_Base]) -> list[_Gain]:
    """Each schedule that is faster than the one of its skeleton that it was made from, with that; the most first."""
    by_symbol = {one.tried.symbol: one for one in family}
    made = [(by_symbol.get(one.tried.parents[0]), one) for one in family if one.tried.parents]
    gains = [(parent, one) for parent, one in made if parent and one.tried.time_ms < _FASTER * parent.tried.time_ms]
    return sorted(gains, key=lambda gain: gain[1].tried.time_ms / gain[0].tried.time_ms)


def _further(base: _Base, gains: Sequence[_Gain]) -> Iterator[Factors]:
    """What made the base faster than its parent, once more."""
    for parent, one in gains:
        if one is base:
            changed = parent.changes_of(base)
            yield {place: round(factor * factor / parent.factors[place]) for place, factor in changed.items()}


def _joined(base: _Base, gains: Sequence[_Gain]) -> list[Factors]:
    """What made other schedules faster and the base does not have yet: as much as goes together first."""
    joined: Factors = {}
    several: list[Factors] = []
    for parent, one in gains:
        changes = parent.changes_of(one)
        is_new = all(base.factors[place] == parent.factors[place] for place in changes)
        if is_new and joined.keys().isdisjoint(changes):
            joined = {**joined, **changes}
            several.append(joined)
    return several[::-1]


def _single_steps(family: Sequence[_Base], structure: DraftStructure, source: Random) -> list[Factors]:
    """One number after the other that was not timed yet, in random order; the large steps first."""
    base = family[0]
    known = [base.changes_of(one) for one in family]
    steps: list[Factors] = []
    for sizes in (_LARGE_STEPS, _SMALL_STEPS):
        made = [
            {place: round(factor * size)}
            for place, factor in base.factors.items()
            for size in sizes
            if sizes is _LARGE_STEPS or not _is_vector(structure, place)
        ]
        fitting = [step for step in made if step not in known and _all_fit(structure, step)]
        steps += source.sample(fitting, len(fitting))
        known += fitting
    return steps


def _is_vector(structure: DraftStructure, place: FactorPlace) -> bool:
    made, site = place.split_in(structure.draft), place.site
    return structure.draft.funcs[site.func].stages[site.stage].kind(made.inner) is LoopKind.VECTORIZED


def _all_fit(structure: DraftStructure, factors: Factors) -> bool:
    return all(
        1 < factor <= largest_factor(structure, place.site, place.split_in(structure.draft))
        for place, factor in factors.items()
    )


def _proposals(base: _Base, steps: Sequence[Factors], mutation: Mutation) -> Iterator[Proposal]:
    for factors in steps:
        child = mutation.changed(base.tried.draft, with_factors(base.tried.draft, factors))
        if child is not None:
            yield Proposal(child, (base.tried.symbol,), (_MOVE,) * len(factors))
