"""Which parameter sets are timed next.

Every set is a proposal where there are few enough; else random ones and the neighbours of the leaders are. A surrogate
that was fitted to what is timed says which of them look fast, or are far from what is known. Where there is time for
all sets, all are timed, the most promising first.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from halide_autotune.autotune_loop.parameters.space import ParameterSet, ParameterSpace, set_sha256
from halide_autotune.autotune_loop.parameters.surrogate import Surrogate
from halide_autotune.autotune_loop.search.selection import FloatArray, choose_batch
from halide_autotune.autotune_loop.specification.options import SearchOptions

# With fewer times there is no model.
_FEWEST_TIMED = 4
# Of a space that is too large to be listed: random proposals, and how far around how many leaders.
_RANDOM_PROPOSALS = 2000
_LEADERS = 10
_STEPS = 2
# A set that failed counts as so many times slower than the slowest, so that others like it are avoided.
_FAILED_FACTOR = 2.0
_OTHER_EVERY = 3


@dataclass(frozen=True)
class TriedSet:
    """A parameter set of which something is known.

    Attributes:
        time_ms: None if it failed.
    """

    values: ParameterSet
    time_ms: float | None


@dataclass(frozen=True)
class ProposedSet:
    """A parameter set to be timed.

    Attributes:
        predicted_ms: what the surrogate expects; None without one.
    """

    values: ParameterSet
    predicted_ms: float | None = None


def propose_sets(
    space: ParameterSpace,
    tried: Sequence[TriedSet],
    known: Collection[str],
    count: int,
    sampling: SearchOptions,
    place: tuple[int, int],
) -> list[ProposedSet]:
    """Choose up to `count` sets that are not known yet; fewer only where there are no more.

    Args:
        tried: what was timed or failed so far.
        known: hashes of the sets that were chosen before; see `set_sha256`.
        place: the round and the task; equal arguments give equal sets.
    """
    text = f"parameters/{sampling.seed}/{place[0]}/{place[1]}".encode()
    source = random.Random(int.from_bytes(hashlib.sha256(text).digest()[:8], "little"))
    proposals = _proposals(space, tried, known, source)
    if not proposals:
        return []
    costs, expected = _predict(space, tried, proposals)
    features = [_features(space, one) for one in proposals]
    chosen = choose_batch(
        features, costs, count, sampling.random_share, sampling.diversity, seed=source.randrange(2**31)
    )
    return [ProposedSet(proposals[index], expected[index]) for index in chosen[:count]]


def sets_to_search(
    space: ParameterSpace, timed: Sequence[TriedSet], sampling: SearchOptions, place: tuple[int, int]
) -> list[ParameterSet]:
    """The sets with which schedules are searched in a round: the first that still gives new schedules counts.

    It is the fastest so far, but every third time a random one.

    Args:
        timed: sets with the times of the generator's own schedule and of others.
        place: the round and the task; equal arguments give the same sets.
    """
    leader = min(timed, key=lambda one: one.time_ms or math.inf).values if timed else space.defaults
    other = space.random_set(random.Random(f"{sampling.seed}/{place[0]}/{place[1]}")) or leader
    is_others_turn = place[0] // 2 % _OTHER_EVERY == _OTHER_EVERY - 1
    return [other, leader] if is_others_turn else [leader, other]


def _proposals(
    space: ParameterSpace, tried: Sequence[TriedSet], known: Collection[str], source: random.Random
) -> list[ParameterSet]:
    """Sets that are not known yet, in random order."""
    if space.listed is not None:
        sets = list(space.listed)
    else:
        found = (space.random_set(source) for _ in range(_RANDOM_PROPOSALS))
        sets = [*_around_leaders(space, tried), *(one for one in found if one is not None)]
    by_hash = {set_sha256(one): one for one in sets}
    proposals = [one for sha256, one in by_hash.items() if sha256 not in known]
    source.shuffle(proposals)
    return proposals


def _around_leaders(space: ParameterSpace, tried: Sequence[TriedSet]) -> list[ParameterSet]:
    timed = sorted((one for one in tried if one.time_ms is not None), key=lambda one: one.time_ms or math.inf)
    around: dict[str, ParameterSet] = {}
    reached = [one.values for one in timed[:_LEADERS]]
    for _ in range(_STEPS):
        reached = [near for one in reached for near in space.neighbours(one)]
        around.update((set_sha256(one), one) for one in reached)
    return list(around.values())


def _predict(
    space: ParameterSpace, tried: Sequence[TriedSet], proposals: Sequence[ParameterSet]
) -> tuple[list[float | None], list[float | None]]:
    """The costs by which proposals are chosen, optimistic where little is known, and the expected times in ms."""
    times_ms = [one.time_ms for one in tried if one.time_ms is not None]
    nothing: list[float | None] = [None] * len(proposals)
    if len(times_ms) < _FEWEST_TIMED:
        return nothing, nothing
    failed_ms = _FAILED_FACTOR * max(times_ms)
    logs = [math.log(failed_ms if one.time_ms is None else one.time_ms) for one in tried]
    surrogate = Surrogate(
        [space.position(one.values) for one in tried], logs, [each.is_ordered for each in space.parameters]
    )
    means, spreads = surrogate.predict([space.position(one) for one in proposals])
    return [*np.exp(means - spreads).tolist()], [*np.exp(means).tolist()]


def _features(space: ParameterSpace, one: ParameterSet) -> FloatArray:
    """A row in which sets are the further apart the more they differ: a value that is not ordered has a column."""
    row: list[float] = []
    for parameter, position in zip(space.parameters, space.position(one), strict=True):
        if parameter.is_ordered:
            row.append(position)
        else:
            row += [float(index == position) for index in range(len(parameter.values))]
    return np.asarray([row], dtype=np.float32)
