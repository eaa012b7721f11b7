"""Predictions against the plug-in's own printed costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.store.featurization import uses_float
from halide_autotune.targets.errors import UsageError, WeightsError
from halide_autotune.weights.weights_file import Weights
from tests.unit.autotune_loop.cost_model.conftest import PluginSearch


@pytest.mark.usefixtures("tensorflow_ready")
def test_predictions_equal_the_plugins(searches: list[PluginSearch]) -> None:
    compared = 0
    for search in searches:
        predictions_ms = CostModel(search.weights, search.num_cores).predict(search.featurizations())
        for schedule, prediction_ms in zip(search.schedules, predictions_ms, strict=True):
            assert prediction_ms == pytest.approx(schedule.plugin_cost_ms, rel=2e-5), schedule
        compared += len({featurization.schedule_sha256 for featurization in search.featurizations()})
    assert compared >= 48


@pytest.mark.usefixtures("tensorflow_ready")
def test_predictions_for_gpus_equal_the_plugins(gpu_searches: list[PluginSearch]) -> None:
    depends_on_cores = []
    for search in gpu_searches:
        (prediction_ms,) = CostModel(search.weights, search.num_cores).predict(search.featurizations())
        assert prediction_ms == pytest.approx(search.schedules[0].plugin_cost_ms, rel=5e-6), search.schedules
        (with_other_cores_ms,) = CostModel(search.weights, 1000).predict(search.featurizations())
        depends_on_cores.append(with_other_cores_ms != prediction_ms)
    assert any(depends_on_cores)


@pytest.mark.usefixtures("tensorflow_ready")
def test_prices_below_zero_count_a_little_for_gpus(gpu_searches: list[PluginSearch], gpu_baseline: Weights) -> None:
    dead = replace(gpu_baseline, conv1_bias=np.full(32, -1e9, dtype=np.float32))
    (prediction_ms,) = CostModel(dead, 40).predict(gpu_searches[0].featurizations())
    assert -1e3 < prediction_ms < 0


@pytest.mark.usefixtures("tensorflow_ready")
def test_features_of_the_other_network_are_refused(
    searches: list[PluginSearch], gpu_searches: list[PluginSearch]
) -> None:
    with pytest.raises(WeightsError, match="features of Anderson2021, but the weights are for Adams2019"):
        CostModel(searches[0].weights, 2).predict(gpu_searches[0].featurizations())
    with pytest.raises(WeightsError, match="features of Adams2019, but the weights are for Anderson2021"):
        CostModel(gpu_searches[0].weights, 2).predict(searches[0].featurizations())


def test_the_plugin_takes_our_weights_without_a_warning(searches: list[PluginSearch]) -> None:
    assert {search.standard_output for search in searches} == {""}


def test_the_types_in_real_features_are_where_we_look(searches: list[PluginSearch]) -> None:
    floats = {search.schedules[0].pipeline: uses_float(search.featurizations()[0]) for search in searches}
    assert floats == {"blur": False, "unsharp": True, "conv": True, "pyramid": False}


def test_one_pipeline_has_one_id_whatever_its_schedule(searches: list[PluginSearch]) -> None:
    ids: dict[str, set[int]] = {}
    for search in searches:
        found = {featurization.pipeline_id for featurization in search.featurizations()}
        ids.setdefault(search.schedules[0].pipeline, set()).update(found)
    assert all(len(found) == 1 for found in ids.values())
    assert len(set.union(*ids.values())) == 4


@pytest.mark.usefixtures("tensorflow_ready")
def test_pipelines_may_be_mixed_in_any_order(searches: list[PluginSearch], baseline: Weights) -> None:
    featurizations = [featurization for search in searches for featurization in search.featurizations()[:3]]
    model = CostModel(baseline, 2)
    alone = np.concatenate([model.predict([featurization]) for featurization in featurizations])
    order = np.random.default_rng(0).permutation(len(featurizations))
    mixed = model.predict([featurizations[index] for index in order])
    assert mixed == pytest.approx(alone[order], rel=1e-6)
    assert len(model.predict([])) == 0


@pytest.mark.usefixtures("tensorflow_ready")
def test_prices_that_are_all_cut_off_predict_zero(searches: list[PluginSearch], baseline: Weights) -> None:
    dead = replace(baseline, conv1_bias=np.full(32, -1e9, dtype=np.float32))
    assert list(CostModel(dead, 2).predict(searches[0].featurizations()[:2])) == [0, 0]


def test_unfit_arguments_are_refused(baseline: Weights) -> None:
    with pytest.raises(UsageError, match="at least 1 core, not 0"):
        CostModel(baseline, 0)
