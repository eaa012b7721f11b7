"""The points of a run are decided by its seed alone."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.candidate import Origin, SearchPoint
from halide_autotune.autotune_loop.search.plan import full_beam_point, greedy_point, random_points

WEIGHTS = Path("used.weights")
SEEDS = st.integers(-(2**63), 2**63)
INDICES = st.integers(0, 10_000)


def first(run_seed: int, round_index: int, task_index: int) -> list[SearchPoint]:
    return list(islice(random_points(run_seed, round_index, task_index, WEIGHTS), 30))


@given(SEEDS, INDICES, INDICES)
def test_equal_arguments_give_equal_points(run_seed: int, round_index: int, task_index: int) -> None:
    points = first(run_seed, round_index, task_index)
    assert points == first(run_seed, round_index, task_index)
    for point in points:
        assert point.origin is Origin.RANDOM and point.weights_path == WEIGHTS
        assert 1 <= point.seed < 2**31 and point.beam_size == 1
        assert 1 <= point.random_dropout < 100 and 0 <= point.weights_noise < 1
    assert len({point.seed for point in points}) > 25


@given(SEEDS, INDICES, INDICES)
def test_another_seed_round_or_argument_set_gives_other_points(run_seed: int, one: int, other: int) -> None:
    points = first(run_seed, one, other)
    assert points != first(run_seed + 1, one, other)
    assert points != first(run_seed, one + 1, other)
    assert points != first(run_seed, one, other + 1)


def test_the_default_is_the_same_search_for_every_seed() -> None:
    points = [full_beam_point(1, WEIGHTS), greedy_point(1, WEIGHTS)]
    assert [(p.origin, p.beam_size, p.random_dropout, p.weights_noise) for p in points] == [
        (Origin.FULL_BEAM, 32, 100, 0.0),
        (Origin.GREEDY, 1, 100, 0.0),
    ]
