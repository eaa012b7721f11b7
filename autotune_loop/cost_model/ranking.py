"""How well predictions order schedules: what a search needs of a cost model, whatever its scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.pipeline_batch import PipelineBatch

Values = npt.NDArray[np.floating]


def ordered_pairs(predicted: Values, runtimes: Values) -> tuple[float, int]:
    """Pairs predicted in the measured order (ties half), and all pairs whose measured times differ.

    Args:
        predicted: (n,) predicted costs; runtimes: (n,) measured times, any unit.
    """
    correct, pairs = 0.0, 0
    for index in range(1, len(runtimes)):  # row by row: no n x n array for thousands of schedules
        measured = np.sign(runtimes[:index] - runtimes[index])
        agreement = measured * np.sign(predicted[:index] - predicted[index])
        differing = int(np.count_nonzero(measured))
        pairs += differing
        correct += (float(agreement.sum()) + differing) / 2
    return correct, pairs


def best_in_top(predicted: Values, runtimes: Values, k: int) -> float | None:
    """The best runtime among the k schedules predicted best, over the best runtime of all; 1.0 is perfect.

    None when there are no schedules. Ties of predictions keep the given order.
    """
    if len(runtimes) == 0:
        return None
    picked = np.argsort(predicted, kind="stable")[:k]
    return float(runtimes[picked].min() / runtimes.min())


def spearman(predicted: Values, runtimes: Values) -> float | None:
    """Spearman's rank correlation, ties given their mean rank; None when either side is constant or n < 2."""
    if len(runtimes) < 2:
        return None
    first, second = _mean_ranks(predicted), _mean_ranks(runtimes)
    spread = float(first.std() * second.std())
    if spread == 0:
        return None
    return float(((first - first.mean()) * (second - second.mean())).mean() / spread)


def _mean_ranks(values: Values) -> npt.NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: npt.NDArray[np.float64] = (last - (counts - 1) / 2.0)[inverse]
    return ranks


# A percentage of fewer pairs would move by several points with one of them.
FEWEST_PAIRS = 30


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

    @property
    def told_accuracy(self) -> float | None:
        """`pairwise_accuracy` where it is of enough pairs to be told as a percentage."""
        return self.pairwise_accuracy if self.pairs >= FEWEST_PAIRS else None

    @property
    def accuracy_text(self) -> str:
        """'71.8 % of 3,380 pairs'; '9 of 12 pairs' where they are too few for a percentage."""
        share = self.pairwise_accuracy or 0.0
        if self.told_accuracy is None:
            return f"{round(share * self.pairs)} of {self.pairs} pairs"
        return f"{100 * share:.1f} % of {self.pairs:,} pairs"


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
