"""What is timed next: what is expected to be fast, what is not known, and few that are alike."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from halide_autotune.autotune_loop.search.models.expectation import Expectation, mean_of
from halide_autotune.autotune_loop.specification.options import Acquisition


def expected(means: list[float], deviations: list[float], best: float = 0.0) -> Expectation:
    return Expectation(np.array(means), np.diag(np.square(deviations)), 0.0, best)


@pytest.mark.parametrize("acquisition", get_args(Acquisition))
def test_the_faster_and_the_less_known_comes_first(acquisition: Acquisition) -> None:
    assert expected([2.0, 1.0], [0.1, 0.1]).most_promising(2, acquisition) == [1, 0]
    assert expected([1.0, 1.0], [0.1, 0.5]).most_promising(2, acquisition) == [1, 0]


@pytest.mark.parametrize("acquisition", get_args(Acquisition))
def test_what_is_like_a_chosen_one_comes_later(acquisition: Acquisition) -> None:
    alike = np.array([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = Expectation(np.array([0.0, 0.05, 0.3]), alike, 0.01, 0.0)
    assert found.most_promising(2, acquisition) == [0, 2]


def test_improvement_prefers_a_sure_gain_to_an_unlikely_one_that_the_bound_prefers() -> None:
    found = expected([-0.5, 1.0], [0.01, 2.0], best=0.0)
    assert found.most_promising(1, "bound") == [1]
    sure, unlikely = expected([-0.5], [0.01]), expected([1.0], [1.0])
    assert sure.best == unlikely.best
    assert expected([-0.5, 1.0], [0.01, 1.0]).most_promising(1, "improvement") == [0]


def test_improvements_too_small_to_compute_still_have_an_order() -> None:
    found = expected([60.0, 50.0, 40.0], [1.0, 1.0, 1.0])
    assert found.most_promising(3, "improvement") == [2, 1, 0]
    assert expected([3.0, 2.0], [0.0, 0.0]).most_promising(2, "improvement") == [1, 0]


def test_the_improvement_is_what_drawing_from_the_distribution_gives_in_the_mean() -> None:
    drawn = np.random.default_rng(0).normal(0.3, 0.7, 400_000)
    improvement = float(np.maximum(0.0, -drawn).mean())
    # A sure gain of a little less comes after it, of a little more before it.
    for gain, first in ((0.95 * improvement, 0), (1.05 * improvement, 1)):
        found = expected([0.3, -gain], [0.7, 1e-9])
        assert found.most_promising(1, "improvement") == [first]


def test_where_models_disagree_less_is_known() -> None:
    # The second takes all to be longer by 7, which is no disagreement about which is faster.
    first, second = (
        expected([1.0, 1.0, 4.0], [0.1, 0.3, 0.1], best=0.2),
        expected([7.0, 9.0, 11.0], [0.1, 0.4, 0.1], best=6.4),
    )
    found = mean_of([first, second])
    assert found.means == pytest.approx([4.0, 5.0, 7.5]) and found.best == pytest.approx(3.3)
    # The variance of a mixture of both: of numbers drawn from either by turns.
    assert np.square(found.deviations) == pytest.approx([0.26, (0.09 + 0.16) / 2 + 0.25, 0.01])
    assert mean_of([first]) is first


def test_what_is_alike_for_several_models_is_for_all_together() -> None:
    alike = np.array([[0.01, 0.009], [0.009, 0.01]])
    found = mean_of([Expectation(np.array(means), alike, 0.0, 0.0) for means in ([0.0, 1.0], [1.0, 0.0])])
    assert found.covariance[0, 1] / found.covariance[0, 0] == pytest.approx(0.9)


def test_nothing_to_choose_from_gives_nothing() -> None:
    assert expected([], []).most_promising(3) == []
