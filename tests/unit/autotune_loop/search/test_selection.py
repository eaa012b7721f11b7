"""What every choice of a batch has in common, whatever the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.search.selection import choose_batch


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(1, 30))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.0, 1.0, 1e14]))
    constant = draw(st.booleans())
    features = [(random.random((2, 39)) * scale).astype(np.float32) for _ in range(size)]
    predicted = st.none() | st.floats(1e-6, 1e9) | st.just(float("inf"))
    return {
        "features": [features[0]] * size if constant else features,
        "predicted_ms": draw(st.lists(predicted, min_size=size, max_size=size)),
        "count": draw(st.integers(0, 35)),
        "random_share": draw(st.floats(0, 1)),
        "diversity": draw(st.floats(0, 5)),
        "seed": draw(st.integers(0, 2**31)),
    }


@given(pools())
@settings(max_examples=150, deadline=None)
def test_a_choice_has_the_right_number_of_different_indices_and_repeats(pool: dict[str, Any]) -> None:
    chosen = choose_batch(**pool)
    assert len(chosen) == min(pool["count"], len(pool["features"]))
    assert len(set(chosen)) == len(chosen) and set(chosen) <= set(range(len(pool["features"])))
    assert choose_batch(**pool) == chosen


@given(pools())
@settings(max_examples=60, deadline=None)
def test_without_chance_and_diversity_the_cheapest_are_chosen(pool: dict[str, Any]) -> None:
    chosen = choose_batch(**{**pool, "random_share": 0.0, "diversity": 0.0})
    costs = [float("inf") if cost is None else cost for cost in pool["predicted_ms"]]
    assert [costs[i] for i in chosen] == sorted(costs)[: len(chosen)]


def test_diversity_prefers_what_is_different() -> None:
    alike = [np.full((1, 39), 1.0 + 1e-3 * i, np.float32) for i in range(9)]
    different = np.full((1, 39), 1e6, np.float32)
    predicted_ms: list[float | None] = [*(1.0 + i / 10 for i in range(9)), 100.0]
    speed_alone = choose_batch([*alike, different], predicted_ms, 2, 0.0, 0.0, 0)
    diverse = choose_batch([*alike, different], predicted_ms, 2, 0.0, 2.0, 0)
    assert speed_alone == [0, 1] and diverse == [0, 9]


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_share_of_chance_is_kept(share: float) -> None:
    features = [np.full((1, 39), i, np.float32) for i in range(100)]
    predicted_ms: list[float | None] = [float(i) for i in range(100)]
    chosen = choose_batch(features, predicted_ms, 20, share, 0.0, 1)
    best = round(20 * (1 - share))
    assert chosen[:best] == list(range(best))
    assert chosen != choose_batch(features, predicted_ms, 20, share, 0.0, 2) or share == 0.0


def test_what_is_far_from_everything_chosen_is_diverse() -> None:
    """On a line: one end, the other, then the middle; not a neighbour of an end, which is far from the other end."""
    places = [0.0, 0.5, 1.0, 5.0, 9.0, 9.5, 10.0]
    features = [np.expm1(np.full((1, 1), place, np.float32)) for place in places]
    chosen = choose_batch(features, [float(place + 1) for place in places], 3, 0.0, 100.0, 0)
    assert [places[index] for index in chosen] == [0.0, 10.0, 5.0]
