"""Our training against Halide's own retraining program, on the same samples."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from halide_autotune.autotune_loop.cost_model.dataset import group_samples
from halide_autotune.autotune_loop.cost_model.fitting import fit
from halide_autotune.autotune_loop.cost_model.network import unpack_weights
from halide_autotune.autotune_loop.specification.options import LearnOptions
from halide_autotune.autotune_loop.store.sample_file import Sample, write_sample
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights, read_weights, write_weights
from tests.halide_tool import TOOL_CORES, check_every_sample_was_read, run_halides_tool

EPOCHS = 40


@pytest.fixture(scope="module")
def tool_output(samples: list[Sample], baseline: Weights, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the tool printed, and the weights it wrote."""
    folder = tmp_path_factory.mktemp("tool")
    paths = [folder / f"{index}.sample" for index in range(len(samples))]
    for sample, path in zip(samples, paths, strict=True):
        write_sample(sample, path)
    write_weights(baseline, folder / "start.weights")
    done = run_halides_tool(Network.ADAMS2019, paths, folder / "start.weights", folder, EPOCHS)
    return done.stdout, folder / "tool.weights"


def test_the_tool_reads_every_sample_of_ours(tool_output: tuple[str, Path], samples: list[Sample]) -> None:
    printed, _ = tool_output
    check_every_sample_was_read(printed, len(samples))


@pytest.mark.usefixtures("tensorflow_ready")
def test_our_training_follows_the_tool(tool_output: tuple[str, Path], samples: list[Sample], baseline: Weights) -> None:
    printed, tool_path = tool_output
    tool_losses = [float(loss) for loss in re.findall(r"^Loss: (\S+)", printed, re.MULTILINE)]
    batches = group_samples(samples, TOOL_CORES)
    parameters, losses = fit(baseline, batches, LearnOptions(epochs=EPOCHS, learning_rate=1e-4))
    total = count = 0.0
    for loss, tool_loss in zip(losses, tool_losses, strict=True):  # the tool prints a decaying mean
        total, count = total + float(loss), count + 1
        assert total / count == pytest.approx(tool_loss, rel=1e-3, abs=1e-4)
        total, count = total * 0.9, count * 0.9
    ours, tools = unpack_weights(parameters, baseline.network), read_weights(tool_path)
    steps = EPOCHS * len(batches)
    for field in fields(Weights):
        start, one, other = (getattr(weights, field.name) for weights in (baseline, ours, tools))
        # Adam moves a weight by about the learning rate a step; the two must agree on far less than that.
        assert np.abs(one - start).max() < 1.5e-4 * steps
        assert np.abs(one - other).max() < 0.05e-4 * steps, field.name
