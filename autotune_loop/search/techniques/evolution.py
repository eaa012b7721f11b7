"""Evolution: children of the fastest schedules so far, by moves and crossover; a model chooses those to time."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from halide_autotune.autotune_loop.moves.mutation import MOVES, Child, Mutation
from halide_autotune.autotune_loop.search.models.population import Population, Tried
from halide_autotune.autotune_loop.search.models.population_model import PopulationModel, PopulationModels
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Proposal

# The parents: so many of the fastest, of which one family has at most a share; the faster the sooner.
_PARENTS = 24
_FAMILY_SHARE = 0.5
_SLOWEST_PARENT = 2.5
_CROSSOVER_SHARE = 0.2
# A parent that is slower than the fastest by this share is chosen less often by a factor of e; none by more than 20.
_FAR_BEHIND, _LEAST_CHANCE = 0.1, 0.05
# One move, or with this chance another one each time.
_MORE_MOVES = 0.35
_MOST_MOVES = 5
# A child is better only if it is this much faster.
_FASTER = 0.98
# As many tries as a move's own weight stands for.
_PRIOR_TRIES = 12.0
# The second batch is made while the first is timed: of few schedules is known how fast they are.
_FEW_TRIED = 3
_USUAL_GAIN_RATE = 0.06
# Some of the children are known already. In two of three batches of recorded runs the fastest child was in the first
# third of the model's order (benchmarks/foreseen_schedules.py).
_CHILDREN_PER_WANTED, _CHILDREN_PER_CHOSEN = 3, 9
# After so many comes a child of another family than the fastest's. Else a start that the others need several moves to
# reach, such as a person's schedule, is all that is ever changed.
_LEADING_PER_OTHER = 2
# What a move does for a pipeline is unknown to models before it was tried so often.
_FEW_TRIES = 3
# Of those that failed because of their vectors, up to this share of the batch is tried again with others.
_SECOND_CHANCES = 1 / 3


class Evolution:
    """Children of the fastest: one move or several, or a part of another parent.

    Args:
        starts: gives the parents before anything is timed.
    """

    def __init__(self, models: PopulationModels | None = None, starts: Starts | None = None) -> None:
        self._models = models or PopulationModels()
        self._starts = starts or Starts()

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        """See `Technique.propose`."""
        yield from _second_chances(population, round(_SECOND_CHANCES * count), source)
        parents = self._parents(population, count, source)
        if not parents:
            return
        model = self._models.fitted(population)
        share = math.ceil(count / (_LEADING_PER_OTHER + 1))
        groups = [(parents, max(1, count - share)), (_of_other_families(parents, population), share)]
        leading, others = _ordered(population, groups, model, source)
        for number, child in enumerate(leading, start=1):
            yield child
            if number % _LEADING_PER_OTHER == 0:
                yield from itertools.islice(others, 1)
        yield from others

    def _parents(self, population: Population, count: int, source: Random) -> list[Tried]:
        parents = parents_of(population.tried)
        if not parents:
            # Before anything is timed, children of what is about to be: as if all were equally fast.
            starts = itertools.islice(self._starts.propose(population, count, source), _PARENTS)
            parents = [Tried("", start.draft, 1.0) for start in starts]
        in_use, is_early = population.in_use, len(population.tried) < _FEW_TRIED
        if parents and in_use is not None and is_early and all(one.draft != in_use.draft for one in parents):
            # What is in use is most likely among the fastest, too.
            parents.append(Tried("", in_use.draft, parents[0].time_ms))
        return parents


def _second_chances(population: Population, count: int, source: Random) -> Iterator[Proposal]:
    """Schedules that failed, as they were: what is proposed gets other vectors where these are known to fail."""
    left = [one for one in population.failed if not one.has_children]
    for one in source.sample(left, min(count, len(left))):
        yield Proposal(one.draft, (one.symbol,))


def _ordered(
    population: Population, groups: Sequence[tuple[Sequence[Tried], int]], model: PopulationModel | None, source: Random
) -> list[Iterator[Proposal]]:
    """Children of each group of parents, of which so many are wanted, as the model orders them if there is one."""
    if model is None:
        return [_children(population, parents, _CHILDREN_PER_WANTED * count, source) for parents, count in groups]
    children = [[*_children(population, parents, _CHILDREN_PER_CHOSEN * count, source)] for parents, count in groups]
    wanted = [([child.draft for child in each], count) for each, (_, count) in zip(children, groups, strict=True)]
    rankings = model.rankings(wanted)
    ordered = [[each[place] for place in places] for each, places in zip(children, rankings, strict=True)]
    ordered[0][_LEADING_PER_OTHER:_LEADING_PER_OTHER] = _by_new_move(children[0], population)
    return [iter(each) for each in ordered]


def _by_new_move(children: Sequence[Proposal], population: Population) -> list[Proposal]:
    """A child by one move that was hardly tried yet: by that which gains most elsewhere. None if all were tried."""
    tries = Counter(name for one in population.tried for name in {*one.moves}) + Counter(population.failed_moves)
    weights = {move.name: move.weight for move in MOVES if tries[move.name] < _FEW_TRIES}
    made = [child for child in children if len(child.moves) == 1 and child.moves[0] in weights]
    return [max(made, key=lambda child: weights[child.moves[0]])] if made else []


def _of_other_families(parents: Sequence[Tried], population: Population) -> list[Tried]:
    by_symbol = {one.symbol: one for one in population.tried}
    leading = _founder(parents[0], by_symbol)
    return [one for one in parents if _founder(one, by_symbol) != leading]


def _children(population: Population, parents: Sequence[Tried], tries: int, source: Random) -> Iterator[Proposal]:
    """At most one for each try; none without parents."""
    if not parents:
        return
    mutation = Mutation(population.names, population.busy)
    weights = move_weights(population)
    chances = chances_of(parents)
    for _ in range(tries):
        (parent,) = source.choices(parents, chances)
        (other,) = source.choices(parents, chances)
        is_crossed = other is not parent and source.random() < _CROSSOVER_SHARE
        if is_crossed:
            child = mutation.crossed(parent.draft, other.draft, source)
        else:
            child = mutation.child(parent.draft, source, weights, _move_count(source))
        if child is not None:
            yield _proposal(child, parent, other if is_crossed else None)


def _proposal(child: Child, parent: Tried, other: Tried | None) -> Proposal:
    parents = [one.symbol for one in (parent, other) if one is not None and one.symbol]
    return Proposal(child.draft, tuple(parents), child.moves)


def _move_count(source: Random) -> int:
    count = 1
    while count < _MOST_MOVES and source.random() < _MORE_MOVES:
        count += 1
    return count


def parents_of(tried: Sequence[Tried]) -> list[Tried]:
    """The fastest, not too slow, of several families: children of one schedule take the population over otherwise."""
    by_symbol = {one.symbol: one for one in tried}
    families: Counter[str] = Counter()
    parents: list[Tried] = []
    for one in tried:
        if parents and one.time_ms > _SLOWEST_PARENT * parents[0].time_ms:
            break
        family = _founder(one, by_symbol)
        if families[family] < _FAMILY_SHARE * _PARENTS:
            families[family] += 1
            parents.append(one)
        if len(parents) == _PARENTS:
            break
    return parents


def _founder(one: Tried, by_symbol: Mapping[str, Tried]) -> str:
    """The first of the line of its first parents."""
    seen = {one.symbol}
    while one.parents and one.parents[0] in by_symbol and one.parents[0] not in seen:
        one = by_symbol[one.parents[0]]
        seen.add(one.symbol)
    return one.symbol


def chances_of(parents: Sequence[Tried]) -> list[float]:
    """How often each is chosen.

    By time: in trials 41 % of the children of parents within 10 % of the fastest were so, too, of others' 5 %.
    """
    behind = [one.time_ms / parents[0].time_ms - 1 for one in parents]
    return [max(_LEAST_CHANCE, math.exp(-each / _FAR_BEHIND)) for each in behind]


def move_weights(population: Population) -> dict[str, float]:
    """How often each move is tried: by how often its children were faster than their first parent, in this run.

    With few tries its own weight counts, which says how often that was so elsewhere.
    """
    by_symbol = {one.symbol: one for one in population.tried}
    tries: Counter[str] = Counter(dict(population.failed_moves))
    gains: Counter[str] = Counter()
    for one in population.tried:
        parent = by_symbol.get(one.parents[0]) if one.parents else None
        for move in set(one.moves) if parent is not None else ():
            tries[move] += 1
            gains[move] += int(parent is not None and one.time_ms < _FASTER * parent.time_ms)
    usual = sum(each.weight for each in MOVES) / len(MOVES)
    weights = {}
    for each in MOVES:
        expected = _USUAL_GAIN_RATE * each.weight / usual
        weights[each.name] = (gains[each.name] + _PRIOR_TRIES * expected) / (tries[each.name] + _PRIOR_TRIES)
    return weights
