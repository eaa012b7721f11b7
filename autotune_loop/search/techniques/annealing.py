"""Simulated annealing on the model of the pipeline's schedules: many moves away from what is known, without timing.

AutoTVM's search (Chen et al., Learning to Optimize Tensor Programs, 2018, section 4.1): parallel chains whose energy is
the predicted time. Its chains go on from batch to batch; these start anew, from the fastest schedules, among which is
what they have found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from halide_autotune.autotune_loop.moves.mutation import Mutation
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.models.population_model import PopulationModel, PopulationModels
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution, chances_of, move_weights, parents_of
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Proposal

_CHAINS_PER_WANTED, _MOST_CHAINS, _STEPS = 2, 16, 8
# In logarithms of the time: a step to what is expected to take so much more is taken in one of e cases.
_FIRST_TEMPERATURE, _LAST_TEMPERATURE = 0.2, 0.01


@dataclass(frozen=True)
class _State:
    proposal: Proposal
    energy: float


class Annealing:
    """Chains of single moves that start at the fastest; what they came by is proposed, the most promising first."""

    def __init__(self, models: PopulationModels | None = None, starts: Starts | None = None) -> None:
        self._models = models or PopulationModels()
        self._evolution = Evolution(self._models, starts)

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        """See `Technique.propose`. Before enough is timed to have a model, children like evolution's."""
        model = self._models.fitted(population)
        if model is None or model.by_schedule is None:
            yield from self._evolution.propose(population, count, source)
            return
        parents = parents_of(population.tried)
        starts = source.choices(parents, chances_of(parents), k=min(_CHAINS_PER_WANTED * count, _MOST_CHAINS))
        chains = _states([Proposal(one.draft, (one.symbol,)) for one in starts], model)
        mutation, weights = Mutation(population.names, population.busy), move_weights(population)
        visited: list[_State] = []
        for step in range(_STEPS):
            share = step / (_STEPS - 1)
            temperature = _FIRST_TEMPERATURE ** (1 - share) * _LAST_TEMPERATURE**share
            steps = [_step(chain.proposal, mutation, weights, source) for chain in chains]
            reached = _states(steps, model)
            visited += reached
            chains = [
                new if source.random() < math.exp(min(0.0, old.energy - new.energy) / temperature) else old
                for old, new in zip(chains, reached, strict=True)
            ]
        moved = [state.proposal for state in visited if state.proposal.moves]
        for place in model.ranking([proposal.draft for proposal in moved], count):
            yield moved[place]


def _step(at: Proposal, mutation: Mutation, weights: Mapping[str, float], source: Random) -> Proposal:
    """One move further; the same where none applies."""
    child = mutation.child(at.draft, source, weights, 1)
    return at if child is None else Proposal(child.draft, at.parents, (*at.moves, *child.moves))


def _states(proposals: Sequence[Proposal], model: PopulationModel) -> list[_State]:
    energies = model.predict([each.draft for each in proposals]).tolist()
    return [_State(*each) for each in zip(proposals, energies, strict=True)]
