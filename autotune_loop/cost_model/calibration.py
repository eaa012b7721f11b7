"""Bringing a model's predictions to the scale of a device before it is trained on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune_loop.cost_model.cost_model import CostModel
from autotune_loop.cost_model.pipeline_batch import PipelineBatch
from weights.arithmetic import scale_weights
from weights.weights_file import Weights


def calibrate(weights: Weights, batches: Sequence[PipelineBatch], num_cores: int) -> Weights:
    """The same weights, scaled so that the median of measured over predicted runtime is 1.

    Halide's loss compares the prediction with the fastest runtime: on a device a hundred times slower than the one
    the weights were trained for, its gradient all but vanishes. The order of schedules does not change.
    """
    model = CostModel(weights, num_cores)
    ratios = [
        batch.runtimes_ms / np.maximum(model.predict_inputs(batch.logs, batch.terms, batch.pipeline_inputs), 1e-10)
        for batch in batches
    ]
    factor = float(np.exp(np.median(np.log(np.concatenate(ratios)))))
    return scale_weights(weights, factor) if np.isfinite(factor) and factor > 0 else weights
