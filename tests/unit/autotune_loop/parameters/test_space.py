"""The sets of a space: all of them, random ones, neighbours, and where each lies."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.parameters.space import MOST_LISTED, ParameterSpace, set_sha256, set_text
from halide_autotune.targets.errors import UsageError

SMALL = ParameterSpace(
    {"x": "16..64:x2", "y": "1..3", "order": "rows,tiles"},
    ("x * y <= edge", "order == 'rows' or y > 1"),
    others={"edge": "64"},
    defaults={"x": "20", "y": "1", "order": "rows"},
)
LARGE = ParameterSpace(dict.fromkeys("abcd", "1..64"), ("a * b <= 64", "c % 2 == 0"))


def test_all_sets_of_a_small_space_fulfil_its_restrictions() -> None:
    assert SMALL.listed is not None and SMALL.combinations == 18
    assert [set_text(one) for one in SMALL.listed] == [
        "x=16 y=1 order=rows",
        "x=16 y=2 order=rows",
        "x=16 y=2 order=tiles",
        "x=16 y=3 order=rows",
        "x=16 y=3 order=tiles",
        "x=32 y=1 order=rows",
        "x=32 y=2 order=rows",
        "x=32 y=2 order=tiles",
        "x=64 y=1 order=rows",
    ]
    assert all(SMALL.contains(one) for one in SMALL.listed)
    assert len({set_sha256(one) for one in SMALL.listed}) == 9


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_random_sets_of_a_large_space_fulfil_its_restrictions(seed: int) -> None:
    assert LARGE.listed is None and LARGE.combinations > MOST_LISTED
    one = LARGE.random_set(random.Random(seed))
    assert one is not None and LARGE.contains(one)
    assert one == LARGE.random_set(random.Random(seed))
    assert all(LARGE.contains(near) and near != one for near in LARGE.neighbours(one))


def test_neighbours_differ_by_one_step_or_in_a_value_without_order() -> None:
    one = {"x": "32", "y": "1", "order": "rows"}
    assert [set_text(near) for near in SMALL.neighbours(one)] == [
        "x=16 y=1 order=rows",
        "x=64 y=1 order=rows",
        "x=32 y=2 order=rows",
    ]
    # A default between two values has both as its neighbours.
    assert [near["x"] for near in SMALL.neighbours(SMALL.defaults) if near["y"] == "1"] == ["16", "32"]


def test_positions_are_even_along_the_values() -> None:
    assert SMALL.position({"x": "32", "y": "3", "order": "tiles"}) == (0.5, 1.0, 1.0)
    assert SMALL.position(SMALL.defaults) == (0.125, 0.0, 0.0)
    assert SMALL.position({"x": "9999", "y": "0", "order": "other"}) == (1.0, 0.0, -1.0)


def test_restrictions_that_exclude_everything() -> None:
    with pytest.raises(UsageError, match="exclude every one of the 3 parameter sets"):
        ParameterSpace({"y": "1..3"}, ("y > 3",)).check_not_empty()
    with pytest.raises(UsageError, match=r"No parameter set .* was found among 16777216"):
        ParameterSpace(dict.fromkeys("abcd", "1..64"), ("a + b + c + d > 999",)).check_not_empty()
    SMALL.check_not_empty()
    LARGE.check_not_empty()
