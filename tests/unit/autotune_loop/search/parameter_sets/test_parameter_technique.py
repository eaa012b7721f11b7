"""Which parameter sets are timed: none twice, all of a few, and soon the best of many."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.parameters.space import ParameterSet, ParameterSpace, set_sha256
from halide_autotune.autotune_loop.search.parameter_sets.parameter_technique import (
    TriedSet,
    propose_sets,
    sets_to_search,
)
from halide_autotune.autotune_loop.specification.options import SearchOptions

FEW = ParameterSpace({"x": "1..4", "order": "rows,tiles"}, ("x < 4 or order == 'rows'",))
MANY = ParameterSpace({"x": "1..1024:x2", "y": "1..1024:x2", "order": "a,b,c"}, ("x * y <= 65536",))
HUGE = ParameterSpace(dict.fromkeys("vwxyz", "1..64"), ("v <= w", "x % 2 == 0"))


def time_ms(values: ParameterSet) -> float:
    """Best at x = 32, y = 64, order b."""
    distance = abs(math.log2(int(values["x"])) - 5) + abs(math.log2(int(values["y"])) - 6)
    return 1.0 + 0.3 * distance + (values["order"] != "b")


def huge_ms(values: ParameterSet) -> float:
    return 1.0 + sum(abs(int(value) - 20) for value in values.values()) / 20


def rounds(space: ParameterSpace, count: int, batch: int, seed: int, time: object = time_ms) -> list[TriedSet]:
    """What so many batches try."""
    assert callable(time)
    tried: list[TriedSet] = []
    for index in range(count):
        known = {set_sha256(one.values) for one in tried}
        chosen = propose_sets(space, tried, known, batch, SearchOptions(seed=seed), (index, 0))
        tried += [TriedSet(one.values, time(one.values)) for one in chosen]
    return tried


@given(seed=st.integers(0, 2**31 - 1), batch=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_every_set_of_a_small_space_is_tried_once(seed: int, batch: int) -> None:
    tried = rounds(FEW, 9, batch, seed, lambda values: None if values["x"] == "2" else 1.0)
    hashes = [set_sha256(one.values) for one in tried]
    assert len(hashes) == len(set(hashes)) and all(FEW.contains(one.values) for one in tried)
    assert len(hashes) == min(7, 9 * batch)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_many_is_found_in_a_quarter_of_them(seed: int) -> None:
    assert MANY.listed is not None
    tried = rounds(MANY, 6, 14, seed)
    assert len(tried) == 84 < len(MANY.listed) / 3
    best = min(tried, key=lambda one: one.time_ms or math.inf)
    assert best.time_ms == pytest.approx(1.0)


def test_a_space_that_is_not_listed_is_searched_around_its_leaders() -> None:
    assert HUGE.listed is None
    tried = rounds(HUGE, 8, 16, 5, huge_ms)
    assert all(HUGE.contains(one.values) for one in tried)
    assert len({set_sha256(one.values) for one in tried}) == 8 * 16
    first = min(one.time_ms or math.inf for one in tried[:16])
    assert min(one.time_ms or math.inf for one in tried) < 0.7 * first


def test_equal_arguments_give_equal_sets() -> None:
    assert rounds(MANY, 2, 8, seed=7) == rounds(MANY, 2, 8, seed=7) != rounds(MANY, 2, 8, seed=8)


def test_sets_like_those_that_failed_are_avoided() -> None:
    space = ParameterSpace({"x": "0..63", "y": "0..63"})
    some = [{"x": str(x), "y": str(y)} for x in range(0, 64, 8) for y in range(0, 64, 8)]
    tried = [TriedSet(one, 1.0 if int(one["x"]) < 32 else None) for one in some]
    sampling = SearchOptions(random_share=0.0, diversity=0.1)
    chosen = propose_sets(space, tried, {set_sha256(one) for one in some}, 20, sampling, (1, 0))
    assert sum(int(one.values["x"]) >= 34 for one in chosen) <= 2
    assert all(one.predicted_ms is not None for one in chosen)


def test_schedules_are_searched_with_the_fastest_set_and_sometimes_with_another() -> None:
    fast, slow = {"x": "2", "order": "rows"}, {"x": "1", "order": "rows"}
    timed = [TriedSet(slow, 2.0), TriedSet(fast, 1.0)]
    first = [sets_to_search(FEW, timed, SearchOptions(), (index, 0))[0] for index in (1, 3, 5, 7, 9)]
    assert [one == fast for one in (first[0], first[1], first[3], first[4])] == [True] * 4
    other, leader = sets_to_search(FEW, timed, SearchOptions(seed=3), (5, 0))
    assert FEW.contains(other) and leader == fast
    assert sets_to_search(FEW, timed, SearchOptions(seed=3), (5, 0)) == [other, leader]
    defaults = ParameterSpace({"x": "1..4"}, defaults={"x": "9"})
    assert sets_to_search(defaults, [], SearchOptions(), (1, 0))[0] == {"x": "9"}
