"""Training Halide's cost model on measured schedules, and judging the result."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

import numpy as np

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel, require_network
from halide_autotune.autotune_loop.cost_model.dataset import MIN_UNIQUE_SCHEDULES, group_samples, split_held_out
from halide_autotune.autotune_loop.cost_model.fitting import fit
from halide_autotune.autotune_loop.cost_model.network import unpack_weights
from halide_autotune.autotune_loop.cost_model.pipeline_batch import PipelineBatch
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores, score_ranking
from halide_autotune.autotune_loop.cost_model.training_report import HELD_OUT, TrainingOutcome, TrainingReport
from halide_autotune.autotune_loop.specification.options import LearnOptions
from halide_autotune.autotune_loop.store.sample_file import Sample
from halide_autotune.weights.arithmetic import scale_weights
from halide_autotune.weights.weights_file import Weights


def calibrate(weights: Weights, batches: Sequence[PipelineBatch], num_cores: int) -> Weights:
    """Scale weights so that the median of measured over predicted runtime is 1.

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


def train(
    weights: Weights, samples: Sequence[Sample], learn: LearnOptions, num_cores: int, seed: int = 0
) -> TrainingReport:
    """Train on samples of any pipelines; accept the new weights only if they rank no worse than the old ones.

    Too few samples, a divergence and a worse result are outcomes in the report, not exceptions. Held-out
    schedules are never trained on, accepted or not. Equal arguments give equal weights on one machine.

    Args:
        num_cores: cores of the device that the runtimes were measured on (Halide's own tool always takes 32).
        seed: chooses which schedules are held out, by the hash of their features, and which pairs the rank loss sees.

    Raises:
        WeightsError: a sample is of another network than the weights.
    """
    require_network((sample.featurization for sample in samples), weights.network)
    started_s = time.monotonic()
    report = _train_and_judge(weights, group_samples(samples, num_cores), learn, num_cores, seed)
    return replace(report, duration_s=time.monotonic() - started_s)


def _train_and_judge(
    weights: Weights, batches: Sequence[PipelineBatch], learn: LearnOptions, num_cores: int, seed: int
) -> TrainingReport:
    splits = [split_held_out(batch, learn.held_out_share, seed) for batch in batches]
    splits = [split for split in splits if len(split[0]) >= 2]
    training, held_out = [split[0] for split in splits], [split[1] for split in splits]
    empty = TrainingReport(
        outcome=TrainingOutcome.TOO_FEW_SAMPLES,
        reason=f"no pipeline has the {MIN_UNIQUE_SCHEDULES} distinct schedules that training needs",
        weights=None,
        losses=(),
        before=None,
        after=None,
        judged_on="",
        pipelines=len(training),
        training_samples=sum(len(batch) for batch in training),
        held_out_samples=sum(len(batch) for batch in held_out),
        duration_s=0.0,
    )
    if not training:
        return empty
    parameters, losses = fit(calibrate(weights, training, num_cores), training, learn, seed)
    fitted = replace(empty, losses=tuple(float(loss) for loss in takewhile(math.isfinite, losses)))
    if not np.isfinite(parameters).all() or not np.isfinite(losses).all():
        return replace(
            fitted,
            outcome=TrainingOutcome.DIVERGED,
            reason=f"the training diverged at the learning rate {learn.learning_rate:g}",
        )
    trained = unpack_weights(parameters, weights.network)
    old, new = CostModel(weights, num_cores), CostModel(trained, num_cores)
    judged_on, judging = HELD_OUT, held_out
    before = score_ranking(old, judging)
    if before.pairs == 0:
        judged_on, judging = "training", training
        before = score_ranking(old, judging)
    after = score_ranking(new, judging)
    outcome, reason = _judge(before, after, judged_on)
    return replace(
        fitted,
        outcome=outcome,
        reason=reason,
        weights=trained if outcome is TrainingOutcome.ACCEPTED else None,
        before=before,
        after=after,
        judged_on=judged_on,
    )


def _judge(before: RankingScores, after: RankingScores, judged_on: str) -> tuple[TrainingOutcome, str]:
    """Accept weights that order at least as many pairs correctly as before; without any pair, accept the new ones."""
    if before.pairwise_accuracy is None or after.pairwise_accuracy is None:
        return TrainingOutcome.ACCEPTED, "all schedules ran equally fast, so there was no order to judge by"
    figures = (
        f"the new weights order {after.accuracy_text} of {judged_on} schedules correctly, "
        f"the old ones {before.accuracy_text.partition(' of ')[0]}"
    )
    if after.pairwise_accuracy < before.pairwise_accuracy:
        return TrainingOutcome.RANKS_WORSE, figures
    return TrainingOutcome.ACCEPTED, figures
