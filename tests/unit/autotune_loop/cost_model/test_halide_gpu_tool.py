"""Anderson2021's model against Halide's own programs: its retraining tool, and its plug-in with weights of ours."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.random_gpu_schedules import sample_gpu_schedules
from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.dataset import group_samples
from halide_autotune.autotune_loop.cost_model.fitting import fit
from halide_autotune.autotune_loop.cost_model.network import unpack_weights
from halide_autotune.autotune_loop.cost_model.terms import cost_terms
from halide_autotune.autotune_loop.specification.options import LearnOptions
from halide_autotune.autotune_loop.store.featurization import read_featurization
from halide_autotune.autotune_loop.store.sample_file import Sample, write_sample
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights, read_weights, write_weights
from tests.halide_tool import TOOL_CORES, run_halides_tool

EPOCHS = 30
pytestmark = pytest.mark.usefixtures("tensorflow_ready")


def run_tool(samples: Sequence[Sample], weights: Weights, folder: Path, predictions: Path | None) -> str:
    """What the tool prints; it trains into `folder/tool.weights`, or only predicts where a file for that is given."""
    paths = [folder / f"{index}.sample" for index in range(len(samples))]
    for sample, path in zip(samples, paths, strict=True):
        write_sample(sample, path)
    write_weights(weights, folder / "start.weights")
    start = folder / "start.weights"
    return run_halides_tool(Network.ANDERSON2021, paths, start, folder, EPOCHS, predictions).stdout


def evenly_priced(weights: Weights, amounts: np.ndarray) -> Weights:
    """Every kind of work costs the same on average, so that a wrong term cannot hide behind a dear one."""
    means = amounts.mean(axis=(0, 1))
    prices = np.divide(1, means, out=np.zeros_like(means), where=means > 0)
    return replace(weights, conv1_filter=np.zeros((32, 32), dtype=np.float32), conv1_bias=prices)


@pytest.mark.parametrize("even", [False, True])
def test_every_term_is_the_tools(even: bool, gpu_samples: list[Sample], gpu_baseline: Weights, tmp_path: Path) -> None:
    """Made-up features give each kind of work an amount; in real schedules half of them are zero."""
    featurizations = [sample.featurization for sample in gpu_samples]
    amounts = np.stack([cost_terms(f.schedule_features, TOOL_CORES, gpu_baseline.network) for f in featurizations])
    assert amounts.any(axis=(0, 1)).tolist() == [k not in (23, 30, 31) for k in range(32)]
    weights = evenly_priced(gpu_baseline, amounts) if even else perturb_weights(gpu_baseline, 0.3, seed=8)
    run_tool(gpu_samples, weights, tmp_path, tmp_path / "predictions")
    lines = [line.split(", ") for line in (tmp_path / "predictions").read_text().splitlines()]
    tool_ms = {int(Path(path).stem): float(prediction) for path, prediction, _ in lines}
    assert sorted(tool_ms) == list(range(len(gpu_samples)))
    for index, prediction_ms in enumerate(CostModel(weights, TOOL_CORES).predict(featurizations)):
        assert prediction_ms == pytest.approx(tool_ms[index], rel=2e-5)


def test_our_training_follows_the_tool(gpu_samples: list[Sample], gpu_baseline: Weights, tmp_path: Path) -> None:
    """With at most 64 schedules of one pipeline the tool has a single batch, so that its shuffling does nothing."""
    printed = run_tool(gpu_samples, gpu_baseline, tmp_path, None)
    assert len(re.findall(r"^Unique sample:", printed, re.MULTILINE)) == len(gpu_samples)
    assert not re.search(r"Truncated|Too-large|Implausible|Negative|Randomizing|WARNING", printed)
    tool_losses = [float(loss) for loss in re.findall(r"^Loss: (\S+)", printed, re.MULTILINE)]
    batches = group_samples(gpu_samples, TOOL_CORES)
    parameters, losses = fit(gpu_baseline, batches, LearnOptions(epochs=EPOCHS, learning_rate=1e-4))
    assert list(losses) == pytest.approx(tool_losses, rel=1e-3, abs=1e-4)
    ours, tools = unpack_weights(parameters, gpu_baseline.network), read_weights(tmp_path / "tool.weights")
    for field in fields(Weights):
        start, one, other = (getattr(weights, field.name) for weights in (gpu_baseline, ours, tools))
        # Adam moves a weight by about the learning rate a step; the two must agree on far less than that.
        assert np.abs(one - start).max() < 1.5e-4 * EPOCHS
        assert np.abs(one - other).max() < 0.05e-4 * EPOCHS, field.name


@pytest.mark.slow
def test_the_plugin_costs_with_our_trained_weights_what_we_predict(
    gpu_samples: list[Sample], gpu_baseline: Weights, examples: Path, cpp_compiler: HostCppCompiler, tmp_path: Path
) -> None:
    batches = group_samples(gpu_samples, TOOL_CORES)
    parameters, _ = fit(gpu_baseline, batches, LearnOptions(epochs=200, learning_rate=1e-3))
    trained = unpack_weights(parameters, gpu_baseline.network)
    write_weights(trained, tmp_path / "trained.weights")
    log = sample_gpu_schedules(
        cpp_compiler.build_generator(examples / "matrix_product.cpp"),
        range(4),
        20,
        "x86-64-linux-cuda-cuda_capability_75",
        tmp_path / "schedules",
        os.environ,
        weights_path=tmp_path / "trained.weights",
        timeout_s=240,
    )
    assert log.standard_output == ""
    found = [read_featurization(schedule.featurization_path, trained.network) for schedule in log.schedules]
    for model, agrees in ((CostModel(trained, 20), True), (CostModel(gpu_baseline, 20), False)):
        for schedule, prediction_ms in zip(log.schedules, model.predict(found), strict=True):
            # The plug-in prints six decimals.
            exact = pytest.approx(schedule.plugin_cost_ms, rel=1e-5, abs=6e-7)
            assert bool(prediction_ms == exact) is agrees, schedule
