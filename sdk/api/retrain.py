"""`sdk.retrain`: weights from recorded runs, without a device."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from autotune_loop.cost_model.process.model_process import tensorflow_environment
from autotune_loop.cost_model.training import train
from autotune_loop.cost_model.training_options import Loss, TrainingOptions
from autotune_loop.cost_model.training_report import TrainingReport
from autotune_loop.specification.tune_request import LearningOptions
from autotune_loop.store.recorded_samples import load_recorded_samples, recorded_network
from sdk.output import silent_stderr
from sdk.select.named_weights import find_weights
from sdk.settings import Settings, export_variables, read_settings
from targets.halide_install import find_halide_install
from targets.profile.loader import load_profile
from targets.profile.profile import BASELINE_WEIGHTS
from weights.lineage import Lineage, write_lineage
from weights.network import Network
from weights.weights_file import weights_sha256, write_weights


def retrain(
    runs: Sequence[Path],
    output: Path,
    *,
    target: str | None = None,
    weights: str | Path | None = None,
    parallelism: int | None = None,
    learning: LearningOptions | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
    notice: Callable[[str], None] = lambda text: None,
    settings: Settings | None = None,
) -> TrainingReport:
    """Train on the samples of recorded runs; `output` is written when the new weights rank no worse,
    and its lineage beside it as `.toml`.

    Args:
        runs: run folders, or folders of `.sample` files made by Halide's own loop.
        output: a `.weights` file.
        target: the runs must be of this profile.
        weights: to start from: a `.weights` file, or a name that `sdk weights` lists; None takes Halide's own.
        parallelism: cores of the device; None takes the runs' own, else the profile's.
        progress: called with a phrase at every step.
        notice: called with a message for each sample that is left out, and where the number of cores is a guess.

    Raises:
        SdkError: one of its children, for everything that a user can mend.
    """
    settings = settings or read_settings()
    learning = learning or LearningOptions()
    profile = load_profile(target or "host", settings.profile_folder)
    named = BASELINE_WEIGHTS if weights is None else str(weights)
    network = recorded_network(runs) if target is None else Network(profile.autoscheduler.name)
    start = find_weights(named, settings, network).weights
    recorded = load_recorded_samples(runs, None if target is None else profile.name, start.network)
    for message in recorded.unreadable:
        notice(f"Left out: {message}")
    if parallelism is None and recorded.parallelism is None:
        notice(
            f"Nothing says how many cores the samples were timed on (a run's run.toml would): taken are"
            f" {profile.machine.parallelism}, as in the profile {profile.name}; --parallelism names others."
        )
    options = TrainingOptions(
        num_cores=_first_given(parallelism, recorded.parallelism, profile.machine.parallelism),
        epochs=learning.epochs,
        learning_rate=learning.learning_rate,
        loss=Loss(learning.loss),
        held_out_share=learning.held_out_share,
        seed=seed,
    )
    progress(f"{len(recorded.samples)} samples read; starting TensorFlow")
    # TensorFlow reads these when it is imported, which `train` does.
    threads = len(os.sched_getaffinity(0))
    export_variables(tensorflow_environment({}, threads))
    with silent_stderr():
        report = train(start, recorded.samples, options)
    if report.weights is not None:
        write_weights(report.weights, output)
        lineage = Lineage(
            profile=recorded.profile or (profile.name if target is not None else ""),
            device=recorded.device or "",
            clock=recorded.clock or "",
            parallelism=options.num_cores,
            network=start.network.value,
            halide_version=find_halide_install().version,
            parent_sha256=weights_sha256(start),
            pipelines=report.pipelines,
            samples=report.training_samples,
            held_out_samples=report.held_out_samples,
            pairwise_accuracy=None if report.after is None else report.after.pairwise_accuracy,
            best_in_top_8=None if report.after is None else report.after.best_in_top_8,
            created=datetime.now(UTC).date().isoformat(),
        )
        write_lineage(lineage, output)
    return report


def _first_given(*numbers: int | None) -> int:
    return next(number for number in numbers if number is not None)
