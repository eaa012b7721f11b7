"""Arithmetic on weights: noise, scaling, and the difference of two sets."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from halide_autotune.targets.errors import WeightsError
from halide_autotune.weights.weights_file import Weights


def perturb_weights(weights: Weights, relative_noise: float, seed: int) -> Weights:
    """Multiply every value by 1 + noise, to vary the schedules that a search samples.

    Args:
        relative_noise: standard deviation of the normal noise.
        seed: equal seeds give equal noise.
    """
    source = np.random.default_rng(seed)
    noisy = {}
    for field in fields(weights):
        values = getattr(weights, field.name)
        factors = 1.0 + relative_noise * source.standard_normal(values.shape)
        noisy[field.name] = (values * factors).astype(np.float32)
    return Weights(**noisy)


def scale_weights(weights: Weights, factor: float) -> Weights:
    """Multiply every prediction by `factor`, for a machine that is slower or faster.

    The prices are relu(conv1), and relu(a·x) = a·relu(x) for a > 0. So scaling the last layer scales predictions
    exactly, and keeps the order of schedules.

    Args:
        factor: above 0.
    """
    return replace(
        weights,
        conv1_filter=(weights.conv1_filter * np.float32(factor)).astype(np.float32),
        conv1_bias=(weights.conv1_bias * np.float32(factor)).astype(np.float32),
    )


def relative_changes(first: Weights, second: Weights) -> dict[str, float]:
    """Return the norm of each array's change over the norm of the first array; infinite if that is zero.

    Raises:
        WeightsError: they are for different networks.
    """
    if first.network is not second.network:
        raise WeightsError(f"Weights for {first.network} cannot be compared with weights for {second.network}.")
    changes = {}
    for field in fields(Weights):
        one, two = (np.asarray(getattr(weights, field.name), dtype=np.float64) for weights in (first, second))
        size, change = float(np.linalg.norm(one)), float(np.linalg.norm(two - one))
        changes[field.name] = change / size if size else 0.0 if change == 0 else float("inf")
    return changes
