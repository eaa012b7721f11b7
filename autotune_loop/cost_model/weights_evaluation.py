"""How well weights order recorded schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.dataset import MIN_UNIQUE_SCHEDULES, group_samples
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores, score_ranking
from halide_autotune.autotune_loop.store.sample_file import Sample
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.weights.weights_file import Weights


@dataclass(frozen=True)
class WeightsScore:
    """One set of weights: over all pipelines together, and for each one by its id."""

    label: str
    overall: RankingScores
    by_pipeline: dict[int, RankingScores]


def evaluate_weights(
    weights: Sequence[tuple[str, Weights]], samples: Sequence[Sample], num_cores: int
) -> list[WeightsScore]:
    """Score each of the labelled weights on the same samples.

    Raises:
        RunFolderError: no pipeline has enough schedules to rank.
        WeightsError: samples and weights are of different networks.
    """
    batches = group_samples(samples, num_cores)
    if not batches:
        raise RunFolderError(
            f"No pipeline among the samples has {MIN_UNIQUE_SCHEDULES} distinct schedules to rank.",
            next_step="Pass longer runs.",
        )
    scores = []
    for label, one in weights:
        model = CostModel(one, num_cores)
        by_pipeline = {batch.pipeline_id: score_ranking(model, [batch]) for batch in batches}
        scores.append(WeightsScore(label, score_ranking(model, batches), by_pipeline))
    return scores
