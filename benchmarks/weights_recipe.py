"""How weights are trained on random programs: its settings, and the choice between them.

Imports TensorFlow; `benchmarks/train_weights.py` sets that up first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import numpy as np

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.dataset import group_samples
from halide_autotune.autotune_loop.cost_model.fitting import fit
from halide_autotune.autotune_loop.cost_model.network import pack_weights, unpack_weights
from halide_autotune.autotune_loop.cost_model.pipeline_batch import PipelineBatch
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores, score_ranking
from halide_autotune.autotune_loop.cost_model.training import calibrate
from halide_autotune.autotune_loop.specification.options import LearnOptions, Loss
from halide_autotune.autotune_loop.store.recorded_samples import RecordedSamples, load_recorded_samples
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.lineage import Lineage, Training
from halide_autotune.weights.weights_file import Weights, weights_sha256

_PARTS = 4


@dataclass(frozen=True)
class Recipe:
    """Settings of a training; `share` is that of the trained weights in the mean with those it began with."""

    loss: Loss
    epochs: int
    learning_rate: float
    share: float


CANDIDATES = [
    Recipe(loss, epochs, learning_rate, share)
    for loss in get_args(Loss)
    for learning_rate, epochs in ((1e-4, 600), (3e-4, 200), (3e-4, 600), (1e-3, 100), (1e-3, 300))
    for share in (1.0, 0.5)
]


def train(run: Path, recipe: Recipe) -> tuple[Weights, Lineage]:
    """Weights from all samples of a run, and where they come from."""
    batches, cores, recorded = _read(run)
    start = _halides_weights()
    lineage = Lineage(
        profile=recorded.profile or "",
        clock=recorded.clock or "",
        parallelism=cores,
        network=start.network.value,
        halide_version=find_halide_install().version,
        parent_sha256=weights_sha256(start),
        training=Training(pipelines=len(batches), samples=sum(len(batch) for batch in batches), rounds=1),
        created=datetime.now(UTC).date().isoformat(),
    )
    return _trained(start, batches, recipe, cores), lineage


def choose(run: Path) -> str:
    """A table of the settings: each is trained on three quarters of the programs and scored on the others, in turn."""
    batches, cores, _ = _read(run)
    start = _halides_weights()
    parts = [batches[part::_PARTS] for part in range(_PARTS)]
    rests = [[batch for other in parts if other is not part for batch in other] for part in parts]
    rows = [f"{'':52}pairs in order  best in top 8"]
    for recipe in (None, *CANDIDATES):
        scores = [
            score_ranking(CostModel(start if recipe is None else _trained(start, rest, recipe, cores), cores), part)
            for part, rest in zip(parts, rests, strict=True)
        ]
        rows.append(f"{recipe or 'baseline'!s:52} {_mean(scores)}")
    return "\n".join(rows)


def _mean(scores: Sequence[RankingScores]) -> str:
    pairs = np.mean([score.pairwise_accuracy for score in scores if score.pairwise_accuracy is not None])
    best = np.mean([score.best_in_top_8 for score in scores if score.best_in_top_8 is not None])
    return f"{pairs:14.1%} {best:14.3f}"


def _read(run: Path) -> tuple[list[PipelineBatch], int, RecordedSamples]:
    recorded = load_recorded_samples([run], None, _halides_weights().network)
    assert recorded.parallelism is not None, "a run knows its cores"
    return group_samples(recorded.samples, recorded.parallelism), recorded.parallelism, recorded


def _halides_weights() -> Weights:
    return baseline_weights(find_halide_install().plugin_path("Adams2019"))


def _trained(start: Weights, batches: Sequence[PipelineBatch], recipe: Recipe, cores: int) -> Weights:
    scaled = calibrate(start, batches, cores)
    learn = LearnOptions(epochs=recipe.epochs, learning_rate=recipe.learning_rate, loss=recipe.loss)
    parameters, _ = fit(scaled, batches, learn)
    mean = recipe.share * parameters + (1 - recipe.share) * pack_weights(scaled)
    return unpack_weights(mean.astype(np.float32), start.network)
