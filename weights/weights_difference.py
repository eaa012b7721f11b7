"""How far two sets of weights are apart."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from targets.errors import WeightsError
from weights.weights_file import Weights


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
