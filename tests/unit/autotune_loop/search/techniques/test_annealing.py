"""Annealing goes many moves away from what is known, to where the model expects shorter times."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import replace
from random import Random

from halide_autotune.autotune_loop.search.techniques.annealing import Annealing
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.search.techniques.technique import Proposal
from tests.timed_drafts import learnt, without_vectors_ms


def first(count: int, seed: int = 3) -> list[Proposal]:
    return list(itertools.islice(Annealing().propose(learnt(count), 8, Random(seed)), 8))


def test_what_comes_first_is_faster_than_what_moves_give() -> None:
    """In the mean over several seeds: by 0.5 of 3.5."""
    moved = [each for seed in range(3, 7) for each in Evolution().propose(learnt(14), 24, Random(seed))]
    usual_ms = statistics.mean(without_vectors_ms(each.draft) for each in moved)
    assert (
        statistics.mean(without_vectors_ms(each.draft) for seed in range(3, 7) for each in first(60, seed)) < usual_ms
    )


def test_it_goes_many_moves_and_tells_them() -> None:
    known = learnt(60)
    made = list(Annealing().propose(known, 8, Random(3)))
    assert max(len(proposal.moves) for proposal in made) >= 4
    symbols = {one.symbol for one in known.tried}
    assert all(len(each.parents) == 1 and {*each.parents} <= symbols and each.moves for each in made)


def test_steps_to_what_is_expected_to_be_slower_are_mostly_not_taken() -> None:
    known, lengths = learnt(60), [0] * 9
    for seed in range(4):
        made = [*Annealing().propose(known, 16 * 8, Random(seed))]
        assert len(made) == 16 * 8, "each of 16 chains tries eight"
        for proposal in made:
            lengths[len(proposal.moves)] += 1
    assert 0 < lengths[8] < 4 * 16 / 2


def test_equal_chances_give_equal_proposals() -> None:
    assert first(60) == first(60) != first(60, seed=4)


def test_before_there_is_a_model_it_makes_children() -> None:
    assert first(14) == list(itertools.islice(Evolution().propose(learnt(14), 8, Random(3)), 8))
    unborn = replace(learnt(14), tried=[])
    assert next(Annealing().propose(unborn, 8, Random(1))).moves
