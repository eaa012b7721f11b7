"""Noise on weights is decided by its seed."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import Weights, weights_sha256


@pytest.fixture(scope="module")
def weights() -> Weights:
    return baseline_weights(find_halide_install().plugin_path("Adams2019"))


def test_equal_seeds_give_equal_noise(weights: Weights) -> None:
    hashes = [weights_sha256(perturb_weights(weights, 0.1, seed)) for seed in (0, 0, 1, 2)]
    assert hashes[0] == hashes[1] and len(set(hashes)) == 3
    assert weights_sha256(perturb_weights(weights, 0.0, 5)) == weights_sha256(weights)


def test_noise_is_relative_and_of_the_size_asked_for(weights: Weights) -> None:
    noisy = perturb_weights(weights, 0.05, 7)
    ratios = []
    for field in fields(Weights):
        before, after = getattr(weights, field.name), getattr(noisy, field.name)
        assert after.shape == before.shape and after.dtype == np.float32
        assert np.array_equal(after == 0, before == 0)
        ratios.append((after[before != 0] / before[before != 0]).ravel())
    everything = np.concatenate(ratios)
    assert everything.mean() == pytest.approx(1.0, abs=0.005) and everything.std() == pytest.approx(0.05, rel=0.1)
