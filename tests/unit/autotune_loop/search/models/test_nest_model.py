"""Models of lowered schedules learn which numbers go with short times, and ask for what they do not know."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from random import Random

import numpy as np
import pytest

from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule
from halide_autotune.autotune_loop.search.models.boosted_trees import BoostedTrees
from halide_autotune.autotune_loop.search.models.model import LOWERED, TREES, TREES_OF_TIMES
from halide_autotune.autotune_loop.search.models.nest_model import MOST_SAMPLES, NestModel
from halide_autotune.autotune_loop.search.models.nest_models import nest_model
from halide_autotune.targets.errors import UsageError

Model = NestModel | BoostedTrees
MODELS: Mapping[str, Callable[..., Model]] = {
    LOWERED: NestModel,
    TREES: BoostedTrees,
    TREES_OF_TIMES: partial(BoostedTrees, uses_ranks=False),
}


def nests(count: int, seed: int = 1) -> list[tuple[float, ...]]:
    """Numbers of schedules: work, traffic, and one that says nothing; the last never varies."""
    chance = Random(seed)
    return [(chance.uniform(20, 22), chance.uniform(12, 15), chance.uniform(0, 1), 3.0) for _ in range(count)]


def time_ms(nest: tuple[float, ...]) -> float:
    return float(2.0 ** (nest[0] - 22) + 2.0 ** (nest[1] - 15))


@pytest.fixture(params=[*MODELS])
def make(request: pytest.FixtureRequest) -> Callable[..., Model]:
    return MODELS[request.param]


def fitted(make: Callable[..., Model], count: int) -> Model:
    known = nests(count)
    return make(known, [time_ms(nest) for nest in known], None)


def test_it_orders_what_it_has_not_seen(make: Callable[..., Model]) -> None:
    unseen = nests(40, seed=2)
    expected = fitted(make, 60).expectation(unseen)
    times = np.array([time_ms(nest) for nest in unseen])
    pairs = [(i, j) for i in range(40) for j in range(i) if abs(np.log(times[i] / times[j])) > 0.1]
    means = expected.means
    assert np.mean([(means[i] < means[j]) == (times[i] < times[j]) for i, j in pairs]) > 0.8
    assert np.abs(means - np.log(times)).mean() < 0.35, "in logarithms of milliseconds"
    assert (expected.deviations >= 0).all()


def test_the_most_promising_come_first_and_differ(make: Callable[..., Model]) -> None:
    model, good = fitted(make, 60), (20.0, 12.0, 0.5, 3.0)
    slow = (22.0, 15.0, 0.5, 3.0)
    assert model.expectation([slow, good, slow]).most_promising(1) == [1]
    assert len({*model.expectation(nests(10, seed=3)).most_promising(10)}) == 10
    assert model.expectation([]).most_promising(5) == []


def test_the_best_is_what_is_expected_of_the_fastest_that_was_timed(make: Callable[..., Model]) -> None:
    known, model = nests(60), fitted(make, 60)
    expected = model.expectation(known)
    assert expected.best == pytest.approx(expected.means.min())
    assert expected.best == pytest.approx(math.log(min(map(time_ms, known))), abs=0.4)


def test_the_same_samples_give_the_same_model(make: Callable[..., Model]) -> None:
    first, second = (fitted(make, 60).expectation(nests(20, seed=5)) for _ in range(2))
    assert (first.means == second.means).all()
    assert (first.covariance == second.covariance).all()


def test_a_process_knows_least_of_what_is_far_from_all_that_was_timed() -> None:
    deviations = fitted(NestModel, 60).expectation([nests(1)[0], (90.0, 90.0, 90.0, 3.0)]).deviations
    assert deviations[0] < deviations[1]


def test_numbers_that_never_varied_say_nothing(make: Callable[..., Model]) -> None:
    one, other = fitted(make, 60).expectation([(22.0, 15.0, 0.5, 3.0), (22.0, 15.0, 0.5, 99.0)]).means
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("count", [2, MOST_SAMPLES + 50])
def test_few_and_many_are_enough(make: Callable[..., Model], count: int) -> None:
    assert np.isfinite(fitted(make, count).expectation(nests(5, seed=4)).means).all()


def test_equal_schedules_with_equal_times_are_no_trouble(make: Callable[..., Model]) -> None:
    model = make([(1.0, 2.0)] * 20, [3.0] * 20, None)
    expected = model.expectation([(1.0, 2.0), (5.0, 5.0)])
    assert expected.means == pytest.approx(np.log(3.0))
    assert sorted(expected.most_promising(2)) == [0, 1]


def test_without_lightgbm_the_error_says_so_before_anything_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(UsageError, match="LightGBM cannot be loaded") as caught:
        nest_model(TREES)
    assert "pip install lightgbm" in str(caught.value.next_step)
    nest_model(LOWERED)


@pytest.mark.parametrize("name", [*MODELS])
def test_a_named_model_learns_from_the_features_of_lowered_schedules(name: str) -> None:
    known = nests(40)
    model = nest_model(name)([LoweredSchedule(each, b"", 2) for each in known], [*map(time_ms, known)], None)
    expected = MODELS[name](known, [*map(time_ms, known)], None).expectation(known[:5])
    assert (model.expectation([LoweredSchedule(each, b"", 2) for each in known[:5]]).means == expected.means).all()
