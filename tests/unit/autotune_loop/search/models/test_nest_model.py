"""The model of lowered schedules learns which numbers go with short times, and asks for what it does not know."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from halide_autotune.autotune_loop.search.models.nest_model import MOST_SAMPLES, NestModel


def nests(count: int, seed: int = 1) -> list[tuple[float, ...]]:
    """Numbers of schedules: work, traffic, and one that says nothing; the last never varies."""
    chance = Random(seed)
    return [(chance.uniform(20, 22), chance.uniform(12, 15), chance.uniform(0, 1), 3.0) for _ in range(count)]


def time_ms(nest: tuple[float, ...]) -> float:
    return float(2.0 ** (nest[0] - 22) + 2.0 ** (nest[1] - 15))


def fitted(count: int) -> NestModel:
    known = nests(count)
    return NestModel(known, [time_ms(nest) for nest in known])


def test_it_orders_what_it_has_not_seen() -> None:
    unseen = nests(40, seed=2)
    means, deviations = fitted(60).predict(unseen)
    times = np.array([time_ms(nest) for nest in unseen])
    pairs = [(i, j) for i in range(40) for j in range(i) if abs(np.log(times[i] / times[j])) > 0.1]
    assert np.mean([(means[i] < means[j]) == (times[i] < times[j]) for i, j in pairs]) > 0.9
    assert (deviations >= 0).all()


def test_the_most_promising_come_first_and_differ() -> None:
    model, good = fitted(60), (20.0, 12.0, 0.5, 3.0)
    slow = (22.0, 15.0, 0.5, 3.0)
    assert model.ranking([slow, good, slow], 1) == [1]
    assert len({*model.ranking(nests(10, seed=3), 10)}) == 10
    assert model.ranking([], 5) == []


def test_it_knows_least_of_what_is_far_from_all_that_was_timed() -> None:
    _, deviations = fitted(60).predict([nests(1)[0], (90.0, 90.0, 90.0, 3.0)])
    assert deviations[0] < deviations[1]


def test_numbers_that_never_varied_say_nothing() -> None:
    model = fitted(60)
    (mean,), _ = model.predict([(22.0, 15.0, 0.5, 3.0)])
    (other,), _ = model.predict([(22.0, 15.0, 0.5, 99.0)])
    assert mean == other


@pytest.mark.parametrize("count", [2, MOST_SAMPLES + 50])
def test_few_and_many_are_enough(count: int) -> None:
    means, _ = fitted(count).predict(nests(5, seed=4))
    assert np.isfinite(means).all()


def test_equal_schedules_with_equal_times_are_no_trouble() -> None:
    model = NestModel([(1.0, 2.0)] * 20, [3.0] * 20)
    means, _ = model.predict([(1.0, 2.0), (5.0, 5.0)])
    assert means == pytest.approx(np.log(3.0))
