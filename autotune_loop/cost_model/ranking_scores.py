"""How well one set of weights orders one set of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotune_loop.cost_model.cost_model import CostModel
from autotune_loop.cost_model.pipeline_batch import PipelineBatch
from autotune_loop.cost_model.ranking import best_in_top, ordered_pairs, spearman


@dataclass(frozen=True)
class RankingScores:
    """Scores over several pipelines; schedules are only ever compared within their own pipeline.

    Attributes:
        samples: schedules scored.
        pairs: pairs of them with different runtimes.
        pairwise_accuracy: share of the pairs predicted in the measured order; None without pairs.
        best_in_top_1, best_in_top_8: best runtime among the 1 or 8 predicted best, over the best of all; 1.0
            is perfect; mean over the pipelines; None without samples.
        spearman: rank correlation, mean over the pipelines where it exists; None where there is none.
    """

    samples: int
    pairs: int
    pairwise_accuracy: float | None
    best_in_top_1: float | None
    best_in_top_8: float | None
    spearman: float | None


def score_ranking(model: CostModel, batches: Sequence[PipelineBatch]) -> RankingScores:
    """Predict every batch and compare the order with the measured one.

    The batches' terms count, so their core count is the one that matters, not the model's.
    """
    scored = [
        (model.predict_inputs(batch.logs, batch.terms, batch.pipeline_inputs), batch.runtimes_ms)
        for batch in batches
        if len(batch)
    ]
    counts = [ordered_pairs(predicted, runtimes_ms) for predicted, runtimes_ms in scored]
    pairs = sum(count for _, count in counts)
    return RankingScores(
        samples=sum(len(runtimes_ms) for _, runtimes_ms in scored),
        pairs=pairs,
        pairwise_accuracy=sum(correct for correct, _ in counts) / pairs if pairs else None,
        best_in_top_1=_mean([best_in_top(*pair, k=1) for pair in scored]),
        best_in_top_8=_mean([best_in_top(*pair, k=8) for pair in scored]),
        spearman=_mean([spearman(*pair) for pair in scored]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known: npt.NDArray[np.float64] = np.array([value for value in values if value is not None], dtype=np.float64)
    return float(known.mean()) if len(known) else None
