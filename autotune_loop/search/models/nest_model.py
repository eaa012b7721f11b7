"""A model of the time of lowered schedules: a Gaussian process over what their loop nests do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import (
    Array,
    Posterior,
    clipped_log_times,
    condition_each,
    fewer,
    matern,
)
from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior, distances, foreseen, in_spreads

# For the distance of two schedules in one feature; for all of them, times the square root of how many there are.
_LENGTHS = (0.3, 0.6, 1.0, 2.0, 4.0)
# Variance of the noise, as a share of that of the times.
_NOISES = (0.003, 0.03, 0.1, 0.3)
# How much of what other pipelines say is taken: whatever makes the times of this one most likely.
_SHARES_OF_PRIOR = (0.0, 0.5, 1.0)
MOST_SAMPLES = 256


class NestModel:
    """Says which of several lowered schedules to time.

    Args:
        timed: the features of each schedule that was timed.
        times_ms: of each; at least two.
        prior: what other pipelines say; what was timed corrects it.
    """

    def __init__(
        self, timed: Sequence[NestFeatures], times_ms: Sequence[float], prior: NestPrior | None = None
    ) -> None:
        log_times = clipped_log_times(times_ms)
        kept = fewer(log_times, MOST_SAMPLES)
        rows = np.array([timed[index] for index in kept])
        self._prior = None if prior is None else prior.corrected(rows, np.array(times_ms)[kept])
        self._center, self._spread = rows.mean(axis=0), rows.std(axis=0)
        self._timed = self._scaled(rows)
        self._posterior = self._fitted(log_times[kept], self._foreseen(rows))
        self._best = math.inf
        self._best = float(self.expectation([timed[index] for index in kept]).means.min())

    def expectation(self, schedules: Sequence[NestFeatures]) -> Expectation:
        """What is expected of schedules."""
        features = np.array(schedules, dtype=np.float64).reshape(len(schedules), len(self._center))
        rows = self._scaled(features)
        across = matern(distances(rows, self._timed) / self._length)
        explained = self._posterior.explained(across)
        covariance = matern(distances(rows, rows) / self._length) - explained.T @ explained
        means = self._mean + self._deviation * self._posterior.means(across) + self._share * self._foreseen(features)
        variance = self._deviation**2
        return Expectation(means, variance * covariance, self._noise * variance, self._best)

    def _foreseen(self, features: Array) -> Array:
        """What other pipelines say of schedules."""
        return foreseen(self._prior, features, self._center)

    def _scaled(self, rows: Array) -> Array:
        return in_spreads(rows - self._center, self._spread)

    def _fitted(self, log_times: Array, foreseen: Array) -> Posterior:
        """The process with the length, the noise and the share of the prior of the largest marginal likelihood."""
        apart = distances(self._timed, self._timed)
        shares = _SHARES_OF_PRIOR if self._prior is not None else (0.0,)
        rests = [log_times - share * foreseen for share in shares]
        means, deviations = [float(rest.mean()) for rest in rests], [float(rest.std()) or 1.0 for rest in rests]
        standard = [(rest - mean) / deviation for rest, mean, deviation in zip(rests, means, deviations, strict=True)]
        best: Posterior | None = None
        most_likely = -np.inf
        for length in np.sqrt(max(1, self._timed.shape[1])) * np.array(_LENGTHS):
            kernel = matern(apart / length)
            for noise in _NOISES:
                for place, found in enumerate(condition_each(kernel, standard, noise)):
                    likelihood = found.log_likelihood - len(log_times) * np.log(deviations[place])
                    if likelihood > most_likely:
                        best, most_likely = found, likelihood
                        self._length, self._noise, self._share = float(length), noise, shares[place]
                        self._mean, self._deviation = means[place], deviations[place]
        assert best is not None, "there are lengths and noises"
        return best
