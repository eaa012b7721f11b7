"""Predictions against the plug-in's own printed costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autotune_loop.cost_model.cost_model import CostModel
from autotune_loop.featurization import uses_float
from targets.errors import UsageError, WeightsError
from targets.halide_install import find_halide_install
from weights.baseline import baseline_weights
from weights.weights_file import Weights


@pytest.mark.usefixtures("tensorflow_ready")
def test_predictions_equal_the_plugins(searches) -> None:
    compared = 0
    for search in searches:
        predictions_ms = CostModel(search.weights, search.num_cores).predict(search.featurizations())
        for schedule, prediction_ms in zip(search.schedules, predictions_ms, strict=True):
            assert prediction_ms == pytest.approx(schedule.plugin_cost_ms, rel=2e-5), schedule
        compared += len({featurization.schedule_sha256 for featurization in search.featurizations()})
    assert compared >= 48


def test_the_plugin_takes_our_weights_without_a_warning(searches) -> None:
    assert {search.standard_output for search in searches} == {""}


def test_the_types_in_real_features_are_where_we_look(searches) -> None:
    floats = {search.schedules[0].pipeline: uses_float(search.featurizations()[0]) for search in searches}
    assert floats == {"blur": False, "unsharp": True, "conv": True, "pyramid": False}


def test_one_pipeline_has_one_id_whatever_its_schedule(searches) -> None:
    ids: dict[str, set[int]] = {}
    for search in searches:
        found = {featurization.pipeline_id for featurization in search.featurizations()}
        ids.setdefault(search.schedules[0].pipeline, set()).update(found)
    assert all(len(found) == 1 for found in ids.values())
    assert len(set.union(*ids.values())) == 4


@pytest.mark.usefixtures("tensorflow_ready")
def test_pipelines_may_be_mixed_in_any_order(searches, baseline: Weights) -> None:
    featurizations = [featurization for search in searches for featurization in search.featurizations()[:3]]
    model = CostModel(baseline, 2)
    alone = np.concatenate([model.predict([featurization]) for featurization in featurizations])
    order = np.random.default_rng(0).permutation(len(featurizations))
    mixed = model.predict([featurizations[index] for index in order])
    assert mixed == pytest.approx(alone[order], rel=1e-6)
    assert len(model.predict([])) == 0


@pytest.mark.usefixtures("tensorflow_ready")
def test_prices_that_are_all_cut_off_predict_zero(searches, baseline: Weights) -> None:
    dead = replace(baseline, conv1_bias=np.full(32, -1e9, dtype=np.float32))
    assert list(CostModel(dead, 2).predict(searches[0].featurizations()[:2])) == [0, 0]


def test_unfit_arguments_are_refused(baseline: Weights) -> None:
    with pytest.raises(UsageError, match="0 cores"):
        CostModel(baseline, 0)
    with pytest.raises(WeightsError, match="for Anderson2021, but"):
        CostModel(baseline_weights(find_halide_install().plugin_path("Anderson2021")), 1)
