"""Arithmetic on weights: noise, scaling, and how far two sets are apart."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from targets.errors import WeightsError
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


def scale_weights(weights: Weights, factor: float) -> Weights:
    """Weights whose every prediction is `factor` times as large.

    The prices are relu(conv1), and relu(a·x) = a·relu(x) for a > 0, so scaling the last layer scales the prediction
    exactly and leaves the order of schedules, and with it every search, as it was.

    Args:
        factor: above 0.
    """
    return replace(
        weights,
        conv1_filter=(weights.conv1_filter * np.float32(factor)).astype(np.float32),
        conv1_bias=(weights.conv1_bias * np.float32(factor)).astype(np.float32),
    )


def relative_changes(first: Weights, second: Weights) -> dict[str, float]:
    """For each array the norm of the difference over the norm of the first one's; infinite where that is zero.

    Raises:
        WeightsError: they are for different networks.
    """
    if first.network is not second.network:
        raise WeightsError(f"Weights for {first.network} and for {second.network} cannot be compared.")
    changes = {}
    for field in fields(Weights):
        one, two = (np.asarray(getattr(weights, field.name), dtype=np.float64) for weights in (first, second))
        size, change = float(np.linalg.norm(one)), float(np.linalg.norm(two - one))
        changes[field.name] = change / size if size else 0.0 if change == 0 else float("inf")
    return changes
