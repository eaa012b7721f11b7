"""`sdk.retrain` and `evaluate_weights`: train and score weights on recorded runs, without a device."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from halide_autotune.autotune_loop.cost_model.process.model_process import tensorflow_environment
from halide_autotune.autotune_loop.cost_model.training import train
from halide_autotune.autotune_loop.cost_model.training_report import TrainingReport
from halide_autotune.autotune_loop.cost_model.weights_evaluation import WeightsScore
from halide_autotune.autotune_loop.events import Listener, Notice, ignore
from halide_autotune.autotune_loop.specification.options import LearnOptions
from halide_autotune.autotune_loop.store.recorded_samples import (
    RecordedSamples,
    load_recorded_samples,
    recorded_network,
)
from halide_autotune.sdk.output import silent_stderr
from halide_autotune.sdk.select.named_weights import find_weights
from halide_autotune.sdk.settings import Settings, export_variables, read_settings
from halide_autotune.targets.errors import UsageError, WeightsError
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import BASELINE_WEIGHTS
from halide_autotune.targets.values.options import check_options
from halide_autotune.weights.lineage import Lineage, Training, check_lineage_place, write_lineage
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import weights_sha256, write_weights


def retrain(
    runs: Sequence[Path],
    output: Path,
    *,
    target: str | None = None,
    parallelism: int | None = None,
    learn: LearnOptions | None = None,
    seed: int = 0,
    listen: Listener = ignore,
    settings: Settings | None = None,
) -> TrainingReport:
    """Train on the samples of recorded runs; write `output`, and its lineage beside it as `.toml`, if the new weights
    rank no worse.

    Args:
        runs: run folders, or folders of `.sample` files from Halide's own loop.
        output: a `.weights` file; a `.toml` beside it that is no lineage is refused before anything is trained.
        target: the profile of the runs; None accepts any.
        learn: how; without weights it starts from Halide's own.
        parallelism: cores of the device; None takes the runs' own, else the profile's.
        listen: called with a notice at every step; with a warning for each sample that is left out, and if the number
            of cores is a guess.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    settings = settings or read_settings()
    learn = check_options(learn or LearnOptions())
    check_lineage_place(output)
    profile = load_profile(target or "host", settings.profile_folder)
    named = BASELINE_WEIGHTS if learn.weights is None else learn.weights
    network = recorded_network(runs) if target is None else Network(profile.autoscheduler.name)
    start = find_weights(named, settings, network).weights
    recorded = load_recorded_samples(runs, None if target is None else profile.name, start.network)
    for message in recorded.unreadable:
        listen(Notice(f"Left out: {message}", warning=True))
    cores = parallelism or recorded.parallelism
    if cores is None:
        cores = profile.machine.parallelism
        guess = f"Assuming {cores}, as in profile {profile.name}; give --parallelism to change it."
        text = "The samples do not say how many cores they were timed on (a run's run.toml does). "
        listen(Notice(text + guess, warning=True))
    _prepare_tensorflow(recorded, lambda text: listen(Notice(text)))
    with silent_stderr():
        report = train(start, recorded.samples, learn, cores, seed)
    if report.weights is not None:
        write_weights(report.weights, output)
        lineage = Lineage(
            profile=recorded.profile or (profile.name if target is not None else ""),
            device=recorded.device or "",
            clock=recorded.clock or "",
            parallelism=cores,
            network=start.network.value,
            halide_version=find_halide_install().version,
            parent_sha256=weights_sha256(start),
            training=Training(
                pipelines=report.pipelines,
                samples=report.training_samples,
                held_out_samples=report.held_out_samples,
                pairwise_accuracy=None if report.after is None else report.after.told_accuracy,
                best_in_top_8=None if report.after is None else report.after.best_in_top_8,
            ),
            created=datetime.now(UTC).date().isoformat(),
        )
        write_lineage(lineage, output)
    return report


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
        progress: called with a phrase at every step.

    Raises:
        WeightsError: weights are damaged or for different networks.
        UsageError: the number of cores is not known.
        RunFolderError: the runs hold no samples, or cannot be compared.
    """
    settings = settings or read_settings()
    found = [find_weights(text, settings) for text in weights if text != BASELINE_WEIGHTS]
    networks = {one.weights.network for one in found}
    if len(networks) > 1:
        listed = ", ".join(f"{one.label} for {one.weights.network}" for one in found)
        raise WeightsError(
            f"Weights of different networks cannot be compared: {listed}.",
            next_step="Compare weights of one network at a time.",
        )
    baseline = find_weights(BASELINE_WEIGHTS, settings, *(networks or {recorded_network(runs)}))
    recorded = load_recorded_samples(runs, None, baseline.weights.network)
    for message in recorded.unreadable:
        progress(f"left out: {message}")
    cores = parallelism or recorded.parallelism
    if cores is None:
        raise UsageError(
            "The samples do not say how many cores they were timed on.", next_step="Give it with --parallelism."
        )
    _prepare_tensorflow(recorded, progress)
    from halide_autotune.autotune_loop.cost_model.weights_evaluation import evaluate_weights as score

    with silent_stderr():
        return score([(one.label, one.weights) for one in (*found, baseline)], recorded.samples, cores)


def _prepare_tensorflow(recorded: RecordedSamples, progress: Callable[[str], None]) -> None:
    """Set the variables that TensorFlow reads while it is imported, which the first training or scoring does."""
    progress(f"{len(recorded.samples)} samples read; starting TensorFlow")
    export_variables(tensorflow_environment({}, len(os.sched_getaffinity(0))))
