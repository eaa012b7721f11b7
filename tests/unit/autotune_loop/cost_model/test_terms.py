"""The hand-written cost terms on features chosen to show one rule each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.cost_model.terms import cost_terms
from halide_autotune.weights.network import Network

INNER_PARALLELISM, OUTER_PARALLELISM, INLINED_CALLS = 9, 10, 17
INLINED_GPU_CALLS, IDLE_LANE_WASTAGE, STORE_EFFICIENCY, LOAD_EFFICIENCY = 18, 57, 64, 65
VECTOR_SIZE, NUM_VECTORS, NUM_SCALARS = 22, 24, 25


def amounts(schedule_features: np.ndarray, num_cores: int) -> np.ndarray:
    return cost_terms(schedule_features, num_cores, Network.ADAMS2019)


def features(stages: int = 2, **columns: float) -> np.ndarray:
    array = np.zeros((stages, 39), dtype=np.float32)
    array[:, [INNER_PARALLELISM, OUTER_PARALLELISM]] = 1
    for name, value in columns.items():
        array[:, int(name.removeprefix("f"))] = value
    return array


def test_idle_cores_make_computing_dearer() -> None:
    work = features(f9=6, f22=8, f24=100)  # 6 tasks of vectors of 8
    assert amounts(work, num_cores=6)[0, 0] == pytest.approx(800e-9)
    assert amounts(work, num_cores=4)[0, 0] == pytest.approx(800e-9 * 2 / 1.5)
    assert amounts(work, num_cores=32)[0, 0] == pytest.approx(800e-9)


def test_inlined_work_has_its_own_prices() -> None:
    plain, inlined = (
        amounts(features(f22=8, f24=2, f25=3), 1),
        amounts(features(f17=1, f22=8, f24=2, f25=3), 1),
    )
    assert plain[0, :4] == pytest.approx([16e-9, 3e-9, 0, 0])
    assert inlined[0, :4] == pytest.approx([0, 0, 16e-9, 3e-9])


def test_stores_go_to_the_price_of_their_place() -> None:
    stores: dict[str, Any] = {"f0": 5.0, "f11": 100.0, "f29": 64.0, "f30": 16.0}
    alone, parallel = amounts(features(**stores), 1), amounts(features(f9=4, **stores), 1)
    lines, stored_bytes = 2 * 5 * 64 / 16 * 1e-9, 2 * 5 * 100 * 1e-9
    assert alone[0, 16:22] == pytest.approx([0, lines, 0, 0, stored_bytes, 0])  # stage 0 is the output
    assert alone[1, 16:22] == pytest.approx([0, 0, lines, 0, 0, stored_bytes])
    for stage in (0, 1):
        assert parallel[stage, 16:22] == pytest.approx([4 * lines, 0, 0, stored_bytes, 0, 0])


def test_parallelism_costs_only_where_there_is_some() -> None:
    alone, parallel = amounts(features(f1=7), 1), amounts(features(f1=7, f9=3), 1)
    assert alone[0, 25:27] == pytest.approx([0, 0])
    assert parallel[0, 25:27] == pytest.approx([7e-9, 14e-9])


def test_many_schedules_at_once_are_the_same_as_each_alone() -> None:
    many = np.exp(np.random.default_rng(0).uniform(0, 10, (5, 4, 39))).astype(np.float32)
    together = amounts(many, 7)
    assert together.shape == (5, 4, 32)
    assert together.dtype == np.float32
    assert all(np.array_equal(together[index], amounts(many[index], 7)) for index in range(5))
    assert not together[..., [4, 28, 29, 30, 31]].any()


def test_idle_lanes_and_scattered_accesses_make_work_dearer() -> None:
    row = np.ones((1, 73), dtype=np.float32)
    row[0, [INLINED_GPU_CALLS, IDLE_LANE_WASTAGE]] = 0
    even = cost_terms(row, 1, Network.ANDERSON2021)[0]
    uneven, inlined = row.copy(), row.copy()
    uneven[0, [IDLE_LANE_WASTAGE, STORE_EFFICIENCY, LOAD_EFFICIENCY]] = 0.75, 0.5, 0.2
    inlined[0] = uneven[0]
    inlined[0, INLINED_GPU_CALLS] = 1
    dearer = cost_terms(uneven, 1, Network.ANDERSON2021)[0] / np.where(even > 0, even, 1)
    assert dearer[[1, 19, 21, 28]] == pytest.approx([4, 4, 2, 5])
    assert {k for k in range(32) if dearer[k] > 1} == {1, 19, 21, 28}
    # Where nothing is stored, nothing is wasted.
    assert cost_terms(inlined, 1, Network.ANDERSON2021)[0, [1, 3, 4, 19, 21, 28]] * 1e9 == pytest.approx(
        [0, 1, 1, 0, 1, 1]
    )


def test_shares_of_nothing_stay_finite() -> None:
    row = np.ones((2, 73), dtype=np.float32)
    row[:, [INLINED_GPU_CALLS, STORE_EFFICIENCY, LOAD_EFFICIENCY]] = 0
    assert np.isfinite(cost_terms(row, 1, Network.ANDERSON2021)).all()
