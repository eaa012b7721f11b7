"""A model of the time of a parameter set: a Gaussian process, fitted anew to everything that was timed.

Matérn's kernel has a length for each parameter, as in Snoek, Larochelle and Adams (Practical Bayesian Optimization of
Machine Learning Algorithms, 2012); lengths and noise are those with the largest marginal likelihood.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import Array, condition, fewer, matern

# Along an ordered parameter, whose values lie between 0 and 1; two values of any other parameter are 1 apart.
_LENGTHS = (0.15, 0.4, 1.0, 2.5, 6.0)
# Variance of the noise, as a share of that of the times.
_NOISES = (1e-4, 1e-2, 1e-1)
_SWEEPS = 2
# Work grows with the third power of the samples: lengths and noise are chosen by fewer than predictions are made from.
_MOST_SAMPLES, _MOST_FITTED = 256, 80
# Their distances to every sample are held at once.
_ROWS_AT_ONCE = 1024


class Surrogate:
    """Predicts the logarithm of times.

    Args:
        positions: of the sets that were timed, one row each; see `ParameterSpace.position`.
        log_times: the logarithms of their times.
        is_ordered: of each parameter.
    """

    def __init__(
        self, positions: Sequence[Sequence[float]], log_times: Sequence[float], is_ordered: Sequence[bool]
    ) -> None:
        self._is_ordered = np.asarray(is_ordered, dtype=bool)
        self._lengths = np.full(len(is_ordered), 1.0)
        self._noise = _NOISES[1]
        rows, times = np.asarray(positions, dtype=np.float64), np.asarray(log_times, dtype=np.float64)
        self._use(rows, times, _MOST_FITTED)
        self._fit()
        self._use(rows, times, _MOST_SAMPLES)
        self._condition()

    def predict(self, positions: Sequence[Sequence[float]]) -> tuple[Array, Array]:
        """The expected logarithm of the time of each set, and its standard deviation."""
        rows = np.asarray(positions, dtype=np.float64)
        parts = [self._predict(rows[start : start + _ROWS_AT_ONCE]) for start in range(0, len(rows), _ROWS_AT_ONCE)]
        return np.concatenate([means for means, _ in parts]), np.concatenate([spreads for _, spreads in parts])

    def _predict(self, rows: Array) -> tuple[Array, Array]:
        across = self._kernel(rows, self._positions)
        variances = np.maximum(1.0 - (self._posterior.explained(across) ** 2).sum(axis=0), 0.0)
        return self._mean + self._scale * self._posterior.means(across), self._scale * np.sqrt(variances)

    def _use(self, rows: Array, times: Array, most: int) -> None:
        kept = fewer(times, most)
        self._positions = rows[kept]
        self._mean, self._scale = float(times[kept].mean()), float(times[kept].std()) or 1.0
        self._targets = (times[kept] - self._mean) / self._scale

    def _fit(self) -> None:
        """Choose each length in turn, then the noise, by the marginal likelihood."""
        best = self._condition()
        for _, index in itertools.product(range(_SWEEPS), range(len(self._lengths) + 1)):
            for value in _NOISES if index == len(self._lengths) else _LENGTHS:
                kept = self._value(index)
                self._set(index, value)
                found = self._condition()
                if found > best:
                    best = found
                else:
                    self._set(index, kept)

    def _value(self, index: int) -> float:
        return self._noise if index == len(self._lengths) else float(self._lengths[index])

    def _set(self, index: int, value: float) -> None:
        if index == len(self._lengths):
            self._noise = value
        else:
            self._lengths[index] = value

    def _condition(self) -> float:
        """Condition the process on the samples; return the logarithm of the marginal likelihood, less a constant."""
        self._posterior = condition(self._kernel(self._positions, self._positions), self._targets, self._noise)
        return self._posterior.log_likelihood

    def _kernel(self, rows: Array, columns: Array) -> Array:
        differences = rows[:, None, :] - columns[None, :, :]
        steps = np.where(self._is_ordered, differences, (differences != 0).astype(np.float64))
        return matern(np.sqrt(((steps / self._lengths) ** 2).sum(axis=2)))
