"""A model of the time of schedules as data: a Gaussian process, fitted anew to what was timed of a pipeline.

Two schedules are as alike as all of their Funcs are together, and as each of them is by itself: what was learnt of one
Func's schedule holds in part whatever the others' are, which is what moves and crossover make use of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from halide_autotune.autotune_loop.draft.features import ABSENT
from halide_autotune.autotune_loop.gaussian_process import (
    Array,
    Posterior,
    clipped_log_times,
    condition,
    fewer,
    matern,
)
from halide_autotune.autotune_loop.search.models.expectation import Expectation

Features = Mapping[str, tuple[float, ...]]

# Of the whole schedule's distance, and as a share of that of each Func's.
_LENGTHS, _LENGTH_OF_ONE = (1.0, 2.0, 4.0, 8.0, 16.0), 0.5
# How much of the covariance is that of the Funcs by themselves.
_SHARES = (0.0, 0.5, 1.0)
# Variance of the noise, as a share of that of the times.
_NOISES = (0.003, 0.03, 0.1, 0.3)
# The least standard deviation of a feature, so that a step of one that hardly varies is no great distance.
_LEAST_SPREAD = 0.3
# Work grows with the third power of the samples, and distances with the square.
_MOST_SAMPLES = 256


class ScheduleModel:
    """Says which of several schedules to time.

    Args:
        timed: features of each schedule that was timed, by Func; see `autotune_loop.draft.features`.
        times_ms: of each; at least two.
    """

    def __init__(self, timed: Sequence[Features], times_ms: Sequence[float]) -> None:
        log_times = clipped_log_times(times_ms)
        kept = fewer(log_times, _MOST_SAMPLES)
        self._funcs = sorted({func for features in timed for func in features})
        rows = self._rows([timed[index] for index in kept])
        spread = rows.std(axis=0)
        # What never varied has told nothing.
        self._scale = np.where(spread > 0, 1.0 / np.maximum(spread, _LEAST_SPREAD), 0.0)
        self._timed = rows * self._scale
        self._mean, self._deviation = float(log_times[kept].mean()), float(log_times[kept].std()) or 1.0
        self._posterior = self._fitted((log_times[kept] - self._mean) / self._deviation)
        self._best = float(self._means(self._kernel(self._timed, self._timed)).min())

    def predict(self, schedules: Sequence[Features]) -> tuple[Array, Array]:
        """The expected logarithm of the time of each, in milliseconds, and its standard deviation."""
        across = self._kernel(self._rows(schedules) * self._scale, self._timed)
        variances = np.maximum(1.0 - (self._posterior.explained(across) ** 2).sum(axis=0), 0.0)
        return self._means(across), self._deviation * np.sqrt(variances)

    def expectation(self, schedules: Sequence[Features]) -> Expectation:
        """What is expected of schedules, together."""
        rows = self._rows(schedules) * self._scale
        across = self._kernel(rows, self._timed)
        explained = self._posterior.explained(across)
        covariance = self._kernel(rows, rows) - explained.T @ explained
        variance = self._deviation**2
        return Expectation(self._means(across), variance * covariance, variance * self._noise, self._best)

    def _means(self, across: Array) -> Array:
        return self._mean + self._deviation * self._posterior.means(across)

    def _fitted(self, values: Array) -> Posterior:
        """The process with the lengths, the share and the noise of the largest marginal likelihood."""
        squares = _squares(self._timed, self._timed)
        whole, by_func = np.sqrt(squares.sum(axis=2)), np.sqrt(squares)
        best: Posterior | None = None
        for length in _LENGTHS:
            kernels = _kernels(whole, by_func, length)
            for share in _SHARES:
                for noise in _NOISES:
                    found = condition((1 - share) * kernels[0] + share * kernels[1], values, noise)
                    if best is None or found.log_likelihood > best.log_likelihood:
                        best, self._length, self._share, self._noise = found, length, share, noise
        assert best is not None, "there are lengths, shares and noises"
        return best

    def _kernel(self, rows: Array, columns: Array) -> Array:
        squares = _squares(rows, columns)
        whole, by_func = _kernels(np.sqrt(squares.sum(axis=2)), np.sqrt(squares), self._length)
        return (1 - self._share) * whole + self._share * by_func

    def _rows(self, schedules: Sequence[Features]) -> Array:
        """Schedule × Func × feature; Funcs that no timed schedule has are left out."""
        return np.array([[features.get(func, ABSENT) for func in self._funcs] for features in schedules])


def _kernels(whole: Array, by_func: Array, length: float) -> tuple[Array, Array]:
    """Of distances: of whole schedules, and the mean of the Funcs'."""
    return matern(whole / length), matern(by_func / (_LENGTH_OF_ONE * length)).mean(axis=2)


def _squares(rows: Array, columns: Array) -> Array:
    """Row × column × Func: the squares of the distances."""
    return np.array([((row - columns) ** 2).sum(axis=2) for row in rows])
