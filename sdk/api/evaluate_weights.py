"""`sdk.evaluate_weights`: how well weights order recorded schedules."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from autotune_loop.cost_model.process.model_process import tensorflow_environment
from autotune_loop.cost_model.weights_evaluation import WeightsScore
from autotune_loop.store.recorded_samples import load_recorded_samples, recorded_network
from sdk.output import silent_stderr
from sdk.select.named_weights import find_weights
from sdk.settings import Settings, export_variables, read_settings
from targets.errors import UsageError, WeightsError
from targets.profile.profile import BASELINE_WEIGHTS


def evaluate_weights(
    weights: Sequence[str],
    runs: Sequence[Path],
    *,
    parallelism: int | None = None,
    progress: Callable[[str], None] = lambda text: None,
    settings: Settings | None = None,
) -> list[WeightsScore]:
    """Score weights on the samples of recorded runs, Halide's own weights beside them.

    Args:
        weights: registered names, paths that end in .weights, or `baseline`; all for one network.
        runs: run folders, or folders of `.sample` files; of one profile, device and clock.
        parallelism: cores of the device; None takes the runs' own.

    Raises:
        WeightsError: weights are damaged or for different networks.
        UsageError: nothing says the number of cores.
        RunFolderError: the runs hold no samples, or cannot be compared.
    """
    settings = settings or read_settings()
    found = [find_weights(text, settings) for text in weights if text != BASELINE_WEIGHTS]
    networks = {one.weights.network for one in found}
    if len(networks) > 1:
        listed = ", ".join(f"{one.label} for {one.weights.network}" for one in found)
        raise WeightsError(f"Weights of different networks cannot be compared: {listed}.")
    baseline = find_weights(BASELINE_WEIGHTS, settings, *(networks or {recorded_network(runs)}))
    recorded = load_recorded_samples(runs, None, baseline.weights.network)
    for message in recorded.unreadable:
        progress(f"left out: {message}")
    cores = parallelism or recorded.parallelism
    if cores is None:
        raise UsageError("Nothing says how many cores the samples were timed on.", next_step="Give --parallelism.")
    progress(f"{len(recorded.samples)} samples read; starting TensorFlow")
    # TensorFlow reads these when it is imported, which the evaluation does.
    export_variables(tensorflow_environment({}, len(os.sched_getaffinity(0))))
    from autotune_loop.cost_model.weights_evaluation import evaluate_weights as score

    with silent_stderr():
        return score([(one.label, one.weights) for one in (*found, baseline)], recorded.samples, cores)
