"""Ranking scores against brute force and known values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.cost_model.ranking import RankingScores, best_in_top, ordered_pairs, spearman

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), max_size=12)


@given(PAIRS)
def test_pairs_are_counted_as_by_hand(values: list[tuple[int, int]]) -> None:
    correct, pairs = 0.0, 0
    for index, (predicted, runtime) in enumerate(values):
        for other_predicted, other_runtime in values[:index]:
            if runtime != other_runtime:
                pairs += 1
                if predicted == other_predicted:
                    correct += 0.5
                else:
                    correct += (predicted < other_predicted) == (runtime < other_runtime)
    predicted_array = np.array([predicted for predicted, _ in values], dtype=np.float32)
    runtimes = np.array([runtime for _, runtime in values], dtype=np.float32)
    assert ordered_pairs(predicted_array, runtimes) == (correct, pairs)


def test_best_in_top() -> None:
    predicted, runtimes = np.array([3.0, 1.0, 2.0]), np.array([2.0, 6.0, 4.0])
    assert [best_in_top(predicted, runtimes, k) for k in (1, 2, 3, 9)] == [3.0, 2.0, 1.0, 1.0]
    assert best_in_top(predicted[:0], runtimes[:0], 1) is None


def test_spearman_known_values() -> None:
    rising = np.arange(5.0)
    assert spearman(rising, rising**3) == pytest.approx(1)
    assert spearman(rising, -rising) == pytest.approx(-1)
    # ranks 1, 2.5, 2.5, 4 against 1, 3, 2, 4
    assert spearman(np.array([1.0, 2, 2, 3]), np.array([1.0, 3, 2, 4])) == pytest.approx(0.9486833)
    assert spearman(np.ones(3), np.arange(3.0)) is None
    assert spearman(rising[:1], rising[:1]) is None


@given(st.lists(st.integers(0, 50), min_size=2, max_size=20))
def test_spearman_depends_on_the_order_alone(values: list[int]) -> None:
    array, other = np.array(values, dtype=np.float64), np.arange(len(values), dtype=np.float64)
    first, second = spearman(array, other), spearman(np.exp(array / 10), other * 3 + 1)
    assert first == second or first == pytest.approx(second)


@pytest.mark.parametrize(
    ("pairs", "share", "text"),
    [
        (12, 0.75, "9 of 12 pairs"),
        (29, 1.0, "29 of 29 pairs"),
        (30, 0.8, "80.0 % of 30 pairs"),
        (0, None, "0 of 0 pairs"),
    ],
)
def test_few_pairs_are_counted_and_not_told_as_a_percentage(pairs: int, share: float | None, text: str) -> None:
    scores = RankingScores(10, pairs, share, None, None, None)
    assert scores.accuracy_text == text
    assert scores.told_accuracy == (share if pairs >= 30 else None)
