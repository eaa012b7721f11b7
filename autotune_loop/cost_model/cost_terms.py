"""The amounts of work B of schedules, for either network."""

from __future__ import annotations

import numpy as np

from autotune_loop.cost_model.adams2019_terms import fill_adams2019_terms
from autotune_loop.cost_model.anderson2021_terms import fill_anderson2021_terms
from autotune_loop.cost_model.terms import TERM_COUNT, FloatArray
from weights.network import Network

_MS_PER_UNIT = np.float32(1e-9)
_FILL_TERMS = {Network.ADAMS2019: fill_adams2019_terms, Network.ANDERSON2021: fill_anderson2021_terms}


def cost_terms(schedule_features: FloatArray, num_cores: int, network: Network) -> FloatArray:
    """The amount of each of the 32 kinds of work.

    Args:
        schedule_features: (..., stages, 39 or 73) float32, the output as stage 0.
        num_cores: cores of the device (of a GPU, its streaming multiprocessors); Halide takes the autoscheduler's
            `parallelism`.
        network: whose features these are.

    Returns:
        (..., stages, 32) float32, already times 1e-9: a dot product with the prices gives milliseconds.
    """
    features = np.moveaxis(schedule_features, -1, 0).astype(np.float32, copy=False)
    terms = np.zeros((TERM_COUNT, *features.shape[1:]), dtype=np.float32)
    _FILL_TERMS[network](features, terms, num_cores)
    terms *= _MS_PER_UNIT
    by_stage: FloatArray = np.ascontiguousarray(np.moveaxis(terms, 0, -1))
    return by_stage
