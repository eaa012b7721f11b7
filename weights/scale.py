"""Weights for a machine that is faster or slower by a factor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weights.weights_file import Weights


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
