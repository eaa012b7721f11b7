"""Pattern search goes from the fastest schedules by their numbers: each alone, then what has helped together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from random import Random

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.draft.factors import FactorPlace, factors_of, with_factors
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.search.models.population import InUse, Population, Tried
from halide_autotune.autotune_loop.search.techniques.pattern import PatternSearch
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Proposal
from tests.drafted_pipelines import recorded, starting_drafts

NAME = "separable_filter"
# Both Funcs in strips of 32 rows, and in vectors of 16 columns for three channels.
FIRST = max(starting_drafts(NAME), key=lambda draft: len(factors_of(draft)))
PLACES = list(factors_of(FIRST))
STRIPS, VECTORS = ([place for place in PLACES if factors_of(FIRST)[place] == n] for n in (32, 16))


def population(*tried: Tried) -> Population:
    return Population(recorded(NAME), sorted(tried, key=lambda one: one.time_ms), {}, cores=4)


def proposed(known: Population, count: int = 8, seed: int = 3) -> list[Proposal]:
    return list(itertools.islice(PatternSearch().propose(known, count, Random(seed)), count))


def changes(made: Proposal, of: Draft = FIRST) -> dict[FactorPlace, float]:
    """How many times as large each number is that is another."""
    before, after = factors_of(of), factors_of(made.draft)
    return {place: after[place] / before[place] for place in before if after[place] != before[place]}


def with_steps(steps: Mapping[FactorPlace, float], of: Draft = FIRST) -> Draft:
    return with_factors(of, {place: round(factors_of(of)[place] * step) for place, step in steps.items()})


def test_each_number_of_the_fastest_is_doubled_and_halved_alone() -> None:
    steps = [changes(each) for each in PatternSearch().propose(population(Tried("first", FIRST, 1.0)), 40, Random(3))]
    assert all(len(step) == 1 for step in steps)
    large = [{place: factor} for place in (*STRIPS, *VECTORS) for factor in (2.0, 0.5)]
    assert all(step in steps[:10] for step in large), "small steps come later"
    assert steps[10:] and all({*step} <= {*STRIPS} for step in steps[10:]), "vectors and channels have none"


def test_it_tells_what_it_changed_and_of_what() -> None:
    made = proposed(population(Tried("first", FIRST, 1.0)))
    assert all((each.parents, each.moves) == (("first",), ("factor",)) for each in made)


def test_what_was_faster_is_done_once_more_and_joined_with_what_else_was() -> None:
    one, other = STRIPS
    made = proposed(
        population(
            Tried("first", FIRST, 1.0),
            Tried("fastest", with_steps({one: 2.0}), 0.8, ("first",), ("factor",)),
            Tried("faster", with_steps({other: 2.0}), 0.9, ("first",), ("factor",)),
        )
    )
    assert [changes(each) for each in made[:2]] == [{one: 4.0}, {one: 2.0, other: 2.0}]
    assert all(each.parents == ("fastest",) for each in made)


def test_what_was_timed_is_not_proposed_again() -> None:
    known = population(Tried("first", FIRST, 1.0))
    made = proposed(known, 12)
    timed = [Tried(f"step{n}", each.draft, 2.0, each.parents, each.moves) for n, each in enumerate(made)]
    again = proposed(population(*known.tried, *timed), 12)
    assert again and not any(each.draft == one.draft for each in again for one in made)


def test_when_the_fastest_has_no_new_steps_the_next_schedule_has() -> None:
    others = [draft for draft in starting_drafts(NAME) if factors_of(draft).keys() != factors_of(FIRST).keys()]
    known = population(Tried("first", FIRST, 1.0), Tried("other", others[0], 1.4), Tried("slow", others[-1], 1.6))
    parents = [each.parents[0] for each in PatternSearch().propose(known, 100, Random(3))]
    assert list(dict.fromkeys(parents)) == ["first", "other"], "half as fast again is too slow"


def test_it_finds_the_numbers_of_the_fastest_in_a_few_batches() -> None:
    best = factors_of(with_steps({STRIPS[0]: 4.0, STRIPS[1]: 0.5, VECTORS[0]: 0.5, VECTORS[1]: 2.0}))

    def time_ms(draft: Draft) -> float:
        """The further each number is from that of the fastest, the slower."""
        return 1.0 + sum(abs(math.log2(factor / best[place])) for place, factor in factors_of(draft).items())

    tried = [Tried("first", FIRST, time_ms(FIRST))]
    for batch in range(4):
        for number, each in enumerate(proposed(population(*tried), seed=batch)):
            tried.append(Tried(f"{batch}/{number}", each.draft, time_ms(each.draft), each.parents, each.moves))
    assert min(one.time_ms for one in tried) < 1.0 + math.log2(3 / 2), "they are less than a small step away"


def test_equal_chances_give_equal_proposals() -> None:
    known = population(Tried("first", FIRST, 1.0))
    assert proposed(known) == proposed(known) != proposed(known, seed=4)


def test_before_anything_is_timed_it_proposes_what_a_search_starts_from() -> None:
    unborn = Population(recorded(NAME), [], {}, cores=4, in_use=InUse(Origin.OWN_SCHEDULE, FIRST))
    assert proposed(unborn) == list(itertools.islice(Starts().propose(unborn, 8, Random(3)), 8))
