"""Gaussian processes: Matérn's kernel, and what is known once samples were seen.

Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006: equations 2.25, 2.26, 2.30 and 4.17.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
# In multiples of the shortest.
_FURTHEST_TIME = 4.0


def matern(distances: Array) -> Array:
    """Matérn's kernel with ν = 5/2, of distances in lengths of the kernel: 1 at none."""
    scaled = np.sqrt(5.0) * distances
    return np.asarray((1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled))


@dataclass(frozen=True)
class Posterior:
    """A process with mean 0 and variance 1, conditioned on samples.

    Attributes:
        factor: Cholesky's, of the samples' covariance with the noise.
        weights: of the samples in a prediction.
        log_likelihood: marginal, less a constant.
    """

    factor: Array
    weights: Array
    log_likelihood: float

    def means(self, across: Array) -> Array:
        """The expected values, from the covariance of each (a row) with the samples."""
        return np.asarray(across @ self.weights)

    def explained(self, across: Array) -> Array:
        """What the samples tell of each, a column: its products are what they take off variances and covariances."""
        return np.asarray(np.linalg.solve(self.factor, across.T))


def condition(kernel: Array, values: Array, noise: float) -> Posterior:
    """Condition a process on samples.

    Args:
        kernel: the covariance of the samples.
        values: of the samples, with mean 0 and variance 1.
        noise: variance of what the process does not explain.
    """
    (found,) = condition_each(kernel, [values], noise)
    return found


def condition_each(kernel: Array, several: Sequence[Array], noise: float) -> list[Posterior]:
    """Condition processes that differ only in the values of their samples; the covariance is factored once."""
    covariance = kernel + noise * np.eye(len(kernel))
    factor: Array = np.linalg.cholesky(covariance).astype(np.float64)
    determinant = float(np.log(np.diag(factor)).sum())
    columns: Array = np.linalg.solve(covariance, np.column_stack(several)).astype(np.float64)
    return [
        Posterior(factor, weights, float(-0.5 * values @ weights) - determinant)
        for values, weights in zip(several, columns.T, strict=True)
    ]


def clipped_log_times(times_ms: Sequence[float] | Array) -> Array:
    """The logarithms of times; one that is far from the shortest counts as if it were not further than that.

    What makes a schedule hopeless tells little of what makes a good one better.
    """
    return np.log(np.minimum(times_ms, _FURTHEST_TIME * np.min(times_ms)))


def fewer(log_times: Array, most: int) -> npt.NDArray[np.int64]:
    """The places of at most so many samples: of too many the fastest half, and as many of the others, evenly."""
    order = np.argsort(log_times, kind="stable")
    if len(order) <= most:
        return order
    half = most // 2
    places = np.linspace(half, len(order) - 1, most - half).round().astype(np.int64)
    return np.concatenate([order[:half], order[places]])
