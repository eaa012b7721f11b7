"""A model of the time of lowered schedules: a Gaussian process over what their loop nests do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import (
    Array,
    Posterior,
    condition,
    fewer,
    matern,
    most_promising,
)
from halide_autotune.autotune_loop.lowered.features import NestFeatures

# For the distance of two schedules in one feature; for all of them, times the square root of how many there are.
_LENGTHS = (0.3, 0.6, 1.0, 2.0, 4.0)
# Variance of the noise, as a share of that of the times.
_NOISES = (0.003, 0.03, 0.1, 0.3)
# Beyond so many standard deviations from the mean one is as far as another.
_FURTHEST_FEATURE = 4.0
# As for the model of schedules: what makes a schedule hopeless tells little of what makes a good one better.
_FURTHEST_TIME = 4.0
MOST_SAMPLES = 256


class NestModel:
    """Says which of several lowered schedules to time.

    Args:
        timed: the features of each schedule that was timed.
        times_ms: of each; at least two.
    """

    def __init__(self, timed: Sequence[NestFeatures], times_ms: Sequence[float]) -> None:
        log_times = np.log(np.minimum(times_ms, _FURTHEST_TIME * min(times_ms)))
        kept = fewer(log_times, MOST_SAMPLES)
        rows = np.array([timed[index] for index in kept])
        self._center, spread = rows.mean(axis=0), rows.std(axis=0)
        self._varied = spread > 0
        self._spread = spread[self._varied]
        self._timed = self._scaled(rows)
        self._mean, self._deviation = float(log_times[kept].mean()), float(log_times[kept].std()) or 1.0
        self._posterior = self._fitted((log_times[kept] - self._mean) / self._deviation)

    def predict(self, schedules: Sequence[NestFeatures]) -> tuple[Array, Array]:
        """The expected logarithm of the time of each, in milliseconds, and its standard deviation."""
        means, covariance = self._known_of(schedules)
        spreads = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return self._mean + self._deviation * means, self._deviation * spreads

    def ranking(self, schedules: Sequence[NestFeatures], count: int) -> list[int]:
        """The places of the `count` schedules to time, the most promising first; see `most_promising`."""
        means, covariance = self._known_of(schedules)
        return most_promising(means, covariance, self._noise, count)

    def _known_of(self, schedules: Sequence[NestFeatures]) -> tuple[Array, Array]:
        rows = self._scaled(np.array(schedules, dtype=np.float64).reshape(len(schedules), len(self._center)))
        across = matern(_distances(rows, self._timed) / self._length)
        explained = self._posterior.explained(across)
        covariance = matern(_distances(rows, rows) / self._length) - explained.T @ explained
        return self._posterior.means(across), covariance

    def _scaled(self, rows: Array) -> Array:
        """What never varied among the timed has told nothing."""
        scaled = (rows - self._center)[:, self._varied] / self._spread
        return np.asarray(np.clip(scaled, -_FURTHEST_FEATURE, _FURTHEST_FEATURE))

    def _fitted(self, values: Array) -> Posterior:
        """The process with the length and the noise of the largest marginal likelihood."""
        distances = _distances(self._timed, self._timed)
        best: Posterior | None = None
        for length in np.sqrt(max(1, self._timed.shape[1])) * np.array(_LENGTHS):
            kernel = matern(distances / length)
            for noise in _NOISES:
                found = condition(kernel, values, noise)
                if best is None or found.log_likelihood > best.log_likelihood:
                    best, self._length, self._noise = found, float(length), noise
        assert best is not None, "there are lengths and noises"
        return best


def _distances(rows: Array, columns: Array) -> Array:
    squares = (rows**2).sum(axis=1)[:, None] + (columns**2).sum(axis=1)[None, :] - 2 * rows @ columns.T
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))
