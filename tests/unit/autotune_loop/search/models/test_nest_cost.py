"""What each kind of operation counts is learnt from how times differ within pipelines, and holds far from them."""

from __future__ import annotations

import numpy as np
import pytest

from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.lowered.features import NEST_FEATURE_NAMES
from halide_autotune.autotune_loop.search.models.nest_cost import NestCost, read_cost, rough_cost

ADDS, DIVIDES = "int_add", "int_divide"


def features(adds: Array, divides: Array, share: Array | float = 1.0) -> Array:
    """Of schedules that do so much on one core; of the operations so many are not at the same time as others."""
    rows = np.zeros((len(adds), len(NEST_FEATURE_NAMES)))
    operations = adds + divides
    done = {
        ADDS: adds,
        DIVIDES: divides,
        "operations": operations,
        "operations on the critical path": share * operations,
    }
    for name, count in done.items():
        rows[:, NEST_FEATURE_NAMES.index(name)] = np.log2(1 + count)
    return rows


def pipeline(seed: int) -> tuple[Array, Array]:
    """Schedules, and their times: a division takes 20 times as long as an addition."""
    chance = np.random.default_rng(seed)
    size = 2 ** chance.uniform(18, 24)
    adds, divides = size * chance.uniform(1, 3, 30), size * chance.uniform(0.05, 0.3, 30)
    return features(adds, divides), 3e-7 * (adds + 20 * divides)


@pytest.fixture(scope="module")
def cost() -> NestCost:
    rows, times_ms = zip(*(pipeline(seed) for seed in range(8)), strict=True)
    return rough_cost().corrected(rows, times_ms)


def ratio(cost: NestCost, rows: Array) -> float:
    one, other = cost.log_costs(rows)
    return float(np.exp(one - other))


def test_what_takes_longer_counts_more_also_where_nothing_alike_was_seen(cost: NestCost) -> None:
    thousand, million, none = np.array([1e3, 1e6]), np.array([1e6, 1e9]), np.zeros(2)
    assert ratio(cost, features(np.array([2e9, 1e9]), none)) == pytest.approx(2, rel=0.01)
    assert ratio(cost, features(np.array([0.0, 1e9]), np.array([1e9, 0.0]))) == pytest.approx(20, rel=0.3)
    assert ratio(cost, features(thousand * 1e6, million * 1e3)) == pytest.approx(1e-3, rel=0.01)


def test_what_cores_do_at_the_same_time_counts_once(cost: NestCost) -> None:
    both = np.array([1e9, 1e9])
    assert ratio(cost, features(both, np.zeros(2), share=np.array([0.25, 1.0]))) == pytest.approx(0.25, rel=0.01)


def test_it_is_learnt_within_pipelines(cost: NestCost) -> None:
    """That a pipeline takes longer for another reason than what its schedules do teaches nothing."""
    rows, times_ms = zip(*(pipeline(seed) for seed in range(8)), strict=True)
    slow = [3.0**place * each for place, each in enumerate(times_ms)]
    assert np.allclose(rough_cost().corrected(rows, slow).weights, cost.weights)


def test_what_further_schedules_tell_nothing_of_counts_as_before(cost: NestCost) -> None:
    adds, ones = np.linspace(1e8, 3e8, 20), np.ones(20)
    corrected = cost.corrected([features(adds, 1e7 * ones)], [adds])
    assert not np.array_equal(corrected.weights, cost.weights)
    divides_only = features(np.zeros(2), np.array([2e9, 1e9]))
    assert ratio(corrected, divides_only) == pytest.approx(ratio(cost, divides_only), rel=0.01)


def test_what_they_tell_is_learnt_from_few(cost: NestCost) -> None:
    """Of a device that divides as fast as it adds."""
    chance = np.random.default_rng(9)
    adds, divides = 1e8 * chance.uniform(1, 3, 12), 1e8 * chance.uniform(0.05, 0.3, 12)
    corrected = cost.corrected([features(adds, divides)], [adds + divides])
    expensive = features(np.array([0.0, 1e9]), np.array([1e9, 0.0]))
    assert ratio(corrected, expensive) < ratio(cost, expensive) / 4


def test_fast_schedules_count_more() -> None:
    """Half of the schedules wait for something else, which takes four times as long as all that they do."""
    chance = np.random.default_rng(3)
    adds, divides = 1e8 * chance.uniform(1, 3, 60), 1e8 * chance.uniform(0.05, 0.3, 60)
    waits, rows = np.arange(60) % 2 == 1, features(adds, divides)

    def learnt(fast: float, slow: float) -> NestCost:
        """Where a division takes so many times as long as an addition."""
        times = np.where(waits, 4 * (adds + slow * divides), adds + fast * divides)
        return rough_cost().corrected([rows], [times])

    expensive = features(np.array([0.0, 1e9]), np.array([1e9, 0.0]))
    assert ratio(learnt(20, 1), expensive) > 2 * ratio(learnt(1, 20), expensive)


def test_it_is_read_as_it_was_written(cost: NestCost) -> None:
    read = read_cost(cost.arrays())
    assert read is not None and np.array_equal(read.weights, cost.weights)
    assert read_cost({}) is None
    terms = cost.arrays()["cost_terms"]
    assert read_cost({**cost.arrays(), "cost_terms": terms[::-1]}) is None, "it is of other terms"


def test_a_damaged_one_is_refused(cost: NestCost) -> None:
    for damaged in (cost.weights[:3], np.full_like(cost.weights, np.nan), np.full_like(cost.weights, 1e9)):
        with pytest.raises(ValueError, match="is damaged"):
            read_cost({**cost.arrays(), "cost_weights": damaged})
