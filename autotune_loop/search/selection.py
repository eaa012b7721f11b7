"""Which of many sampled schedules are built: a diverse choice of those the model likes best, and some at random."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


def choose_batch(
    features: Sequence[FloatArray],
    predicted_ms: Sequence[float | None],
    count: int,
    random_share: float,
    diversity: float,
    seed: int,
) -> list[int]:
    """Choose `count` of the pool, as indices into it, the most promising first.

    AutoTVM's recipe (Chen et al. 2018, sections 3.3 and 3.4): an ε share of the batch is drawn at random, so that a
    wrong model cannot starve the search; the rest maximises predicted speed plus difference from what is chosen
    already, greedily.

    Args:
        features: schedule features of each schedule, (stages, features), all of one pipeline.
        predicted_ms: the model's costs; None (no prediction) counts as the worst.
        random_share: ε, 0 to 1.
        diversity: weight of being different against being fast, 0 is speed alone.
    """
    pool = len(features)
    if pool <= count:
        return sorted(range(pool), key=lambda i: _cost(predicted_ms[i]))
    random_count = round(count * random_share)
    chosen = _greedy(features, predicted_ms, count - random_count, diversity)
    rest = [i for i in range(pool) if i not in set(chosen)]
    return chosen + random.Random(seed).sample(rest, random_count)


def _cost(predicted_ms: float | None) -> float:
    return float("inf") if predicted_ms is None else predicted_ms


def _greedy(
    features: Sequence[FloatArray], predicted_ms: Sequence[float | None], count: int, diversity: float
) -> list[int]:
    # Speed counts by rank, which needs no scale: 1 for the best of the pool, 0 for the worst.
    order = sorted(range(len(features)), key=lambda i: _cost(predicted_ms[i]))
    speed = np.empty(len(features))
    speed[order] = np.linspace(1.0, 0.0, len(features))
    points = _standardised(features)
    nearest = np.full(len(features), np.inf)
    chosen: list[int] = []
    for _ in range(count):
        furthest = nearest[np.isfinite(nearest)].max(initial=0.0)
        novelty = nearest / furthest if furthest > 0 else np.zeros(len(features))
        score = speed + diversity * novelty
        score[chosen] = -np.inf
        best = int(np.argmax(score))
        chosen.append(best)
        nearest = np.minimum(nearest, np.linalg.norm(points - points[best], axis=1))
    return chosen


def _standardised(features: Sequence[FloatArray]) -> npt.NDArray[np.float64]:
    """One row a schedule: log features, centred and scaled, constant columns left out."""
    rows = np.stack([np.log1p(array.astype(np.float64)).ravel() for array in features])
    spread = rows.std(axis=0)
    varies = spread > 1e-9
    return np.asarray((rows[:, varies] - rows[:, varies].mean(axis=0)) / spread[varies])
