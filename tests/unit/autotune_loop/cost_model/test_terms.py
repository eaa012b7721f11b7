"""The hand-written cost terms on features chosen to show one rule each."""

from __future__ import annotations

import numpy as np
import pytest

from autotune_loop.cost_model.terms import cost_terms

INNER_PARALLELISM, OUTER_PARALLELISM, INLINED_CALLS = 9, 10, 17
VECTOR_SIZE, NUM_VECTORS, NUM_SCALARS = 22, 24, 25


def features(stages: int = 2, **columns: float) -> np.ndarray:
    array = np.zeros((stages, 39), dtype=np.float32)
    array[:, [INNER_PARALLELISM, OUTER_PARALLELISM]] = 1
    for name, value in columns.items():
        array[:, int(name.removeprefix("f"))] = value
    return array


def test_idle_cores_make_computing_dearer() -> None:
    work = features(f9=6, f22=8, f24=100)  # 6 tasks of vectors of 8
    assert cost_terms(work, num_cores=6)[0, 0] == pytest.approx(800e-9)
    assert cost_terms(work, num_cores=4)[0, 0] == pytest.approx(800e-9 * 2 / 1.5)
    assert cost_terms(work, num_cores=32)[0, 0] == pytest.approx(800e-9)


def test_inlined_work_has_its_own_prices() -> None:
    plain, inlined = (
        cost_terms(features(f22=8, f24=2, f25=3), 1),
        cost_terms(features(f17=1, f22=8, f24=2, f25=3), 1),
    )
    assert plain[0, :4] == pytest.approx([16e-9, 3e-9, 0, 0])
    assert inlined[0, :4] == pytest.approx([0, 0, 16e-9, 3e-9])


def test_stores_go_to_the_price_of_their_place() -> None:
    stores = {"f0": 5.0, "f11": 100.0, "f29": 64.0, "f30": 16.0}
    alone, parallel = cost_terms(features(**stores), 1), cost_terms(features(f9=4, **stores), 1)
    lines, stored_bytes = 2 * 5 * 64 / 16 * 1e-9, 2 * 5 * 100 * 1e-9
    assert alone[0, 16:22] == pytest.approx([0, lines, 0, 0, stored_bytes, 0])  # stage 0 is the output
    assert alone[1, 16:22] == pytest.approx([0, 0, lines, 0, 0, stored_bytes])
    for stage in (0, 1):
        assert parallel[stage, 16:22] == pytest.approx([4 * lines, 0, 0, stored_bytes, 0, 0])


def test_parallelism_costs_only_where_there_is_some() -> None:
    alone, parallel = cost_terms(features(f1=7), 1), cost_terms(features(f1=7, f9=3), 1)
    assert alone[0, 25:27] == pytest.approx([0, 0])
    assert parallel[0, 25:27] == pytest.approx([7e-9, 14e-9])


def test_many_schedules_at_once_are_the_same_as_each_alone() -> None:
    many = np.exp(np.random.default_rng(0).uniform(0, 10, (5, 4, 39))).astype(np.float32)
    together = cost_terms(many, 7)
    assert together.shape == (5, 4, 32)
    assert together.dtype == np.float32
    assert all(np.array_equal(together[index], cost_terms(many[index], 7)) for index in range(5))
    assert not together[..., [4, 28, 29, 30, 31]].any()
