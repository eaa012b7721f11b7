"""The model of parameter sets: exact where it knows, unsure where it does not, and with an eye for what matters."""

from __future__ import annotations

import itertools
import math

import numpy as np

from halide_autotune.autotune_loop.parameters.surrogate import Surrogate

GRID = [(x / 7, y / 7, float(kind)) for x, y, kind in itertools.product(range(8), range(8), range(2))]


def log_time(x: float, y: float, kind: float) -> float:
    """A valley along x, nothing along y, and one kind that is always slower."""
    return 4 * (x - 0.6) ** 2 + 0.5 * kind


def test_it_finds_the_valley_from_a_few_samples() -> None:
    chosen = np.random.default_rng(1).permutation(len(GRID))[:24]
    known = [GRID[index] for index in chosen]
    model = Surrogate(known, [log_time(*one) for one in known], (True, True, False))
    means, spreads = model.predict(GRID)
    assert np.abs(means - [log_time(*one) for one in GRID]).max() < 0.15
    best = GRID[int(means.argmin())]
    assert abs(best[0] - 0.6) <= 1 / 7 and best[2] == 0.0
    assert (spreads >= 0).all()


def test_it_is_unsure_where_it_knows_nothing() -> None:
    known = [(x / 10, 0.0, 0.0) for x in range(5)]
    model = Surrogate(known, [math.sin(20 * x) for x, _, _ in known], (True, True, False))
    _, (near, far) = model.predict([(0.2, 0.0, 0.0), (1.0, 0.0, 0.0)])
    assert near < far


def test_equal_times_and_many_samples_are_no_trouble() -> None:
    flat = Surrogate(GRID, [0.0] * len(GRID), (True, True, False))
    means, _ = flat.predict(GRID)
    assert np.allclose(means, 0.0)
    many = [(index / 999, 0.0, 0.0) for index in range(1000)]
    means, _ = Surrogate(many, [log_time(*one) for one in many], (True, True, False)).predict([(0.6, 0.0, 0.0)])
    assert abs(float(means[0])) < 0.05
