"""Calibration moves predictions to the device's scale and leaves the order of schedules alone."""

from __future__ import annotations

import numpy as np
import pytest

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.network import PIPELINE_INPUTS
from halide_autotune.autotune_loop.cost_model.pipeline_batch import PipelineBatch
from halide_autotune.autotune_loop.cost_model.terms import TERM_COUNT
from halide_autotune.autotune_loop.cost_model.training import calibrate
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.weights.arithmetic import scale_weights
from halide_autotune.weights.baseline import baseline_weights

pytestmark = pytest.mark.usefixtures("tensorflow_ready")


def _batch() -> PipelineBatch:
    source = np.random.default_rng(3)
    shape = (12, 3)
    return PipelineBatch(
        pipeline_id=1,
        schedule_sha256s=tuple(str(index) for index in range(shape[0])),
        logs=source.uniform(0, 10, (*shape, 40)).astype(np.float32),
        terms=source.uniform(0, 1e6, (*shape, TERM_COUNT)).astype(np.float32),
        pipeline_inputs=source.uniform(0, 5, (3, PIPELINE_INPUTS)).astype(np.float32),
        runtimes_ms=source.uniform(50, 500, shape[0]).astype(np.float32),
    )


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_scaling_the_last_layer_scales_every_prediction(factor: float) -> None:
    weights, batch = baseline_weights(find_halide_install().plugin_path("Adams2019")), _batch()
    inputs = (batch.logs, batch.terms, batch.pipeline_inputs)
    before = CostModel(weights, 4).predict_inputs(*inputs)
    after = CostModel(scale_weights(weights, factor), 4).predict_inputs(*inputs)
    np.testing.assert_allclose(after, before * factor, rtol=1e-4)


def test_the_median_of_measured_over_predicted_becomes_one() -> None:
    weights, batch = baseline_weights(find_halide_install().plugin_path("Adams2019")), _batch()
    inputs = (batch.logs, batch.terms, batch.pipeline_inputs)
    before = CostModel(weights, 4).predict_inputs(*inputs)
    after = CostModel(calibrate(weights, [batch], 4), 4).predict_inputs(*inputs)
    assert np.median(np.log(batch.runtimes_ms / after)) == pytest.approx(0, abs=1e-3)
    assert np.argsort(after).tolist() == np.argsort(before).tolist()
