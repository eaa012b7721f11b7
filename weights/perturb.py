"""Noise on weights, for diversity in sampling."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from weights.weights_file import Weights


def perturb_weights(weights: Weights, relative_noise: float, seed: int) -> Weights:
    """Weights whose every value is multiplied by 1 + noise; the same for the same arguments.

    Args:
        relative_noise: standard deviation of the normal noise.
        seed: of the noise.
    """
    source = np.random.default_rng(seed)
    noisy = {}
    for field in fields(weights):
        values = getattr(weights, field.name)
        factors = 1.0 + relative_noise * source.standard_normal(values.shape)
        noisy[field.name] = (values * factors).astype(np.float32)
    return Weights(**noisy)
