"""How well predictions order schedules: what a search needs of a cost model, whatever its scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating]


def pairwise_accuracy(predicted: Values, runtimes: Values) -> float | None:
    """Share of pairs of schedules that the prediction puts in the measured order.

    Pairs measured equal do not count; pairs predicted equal count half. None when no pair is left.

    Args:
        predicted: (n,) predicted costs; runtimes: (n,) measured times, any unit.
    """
    correct, pairs = ordered_pairs(predicted, runtimes)
    return correct / pairs if pairs else None


def ordered_pairs(predicted: Values, runtimes: Values) -> tuple[float, int]:
    """Pairs predicted in the measured order (ties half), and all pairs whose measured times differ."""
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
