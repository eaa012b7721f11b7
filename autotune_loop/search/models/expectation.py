"""What a model expects of several schedules, and which of them are worth timing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.specification.options import Acquisition

# How much what is not known of a schedule speaks for it, in standard deviations.
CURIOSITY = 1.0
# Of a schedule that was timed, so that how far models disagree on it can be told.
_LEAST_VARIANCE = 1e-9


@dataclass(frozen=True)
class Expectation:
    """What a model expects of schedules, as logarithms of their times.

    Attributes:
        means, covariance: of the schedules.
        noise: variance of what the model does not explain.
        best: what it expects of the fastest that was timed.
    """

    means: Array
    covariance: Array
    noise: float
    best: float

    @property
    def deviations(self) -> Array:
        """The standard deviation of each."""
        return _deviations(self.covariance)

    def most_promising(self, count: int, acquisition: Acquisition = "bound") -> list[int]:
        """The places of the `count` schedules to time, the most promising first.

        Each that is chosen counts as timed for what is known of the next, so that they differ (GP-BUCB: Desautels,
        Krause and Burdick 2014).

        Args:
            acquisition: the lower the lower bound of its time the sooner; or the more it is expected to be faster than
                the best so far (Jones, Schonlau and Welch 1998, equation 15).
        """
        covariance = self.covariance
        left, chosen = np.ones(len(self.means), dtype=bool), []
        for _ in range(min(count, len(self.means))):
            deviations = _deviations(covariance)
            if acquisition == "bound":
                merits = CURIOSITY * deviations - self.means
            else:
                merits = _log_improvement(self.best - self.means, deviations)
            place = int(np.argmax(np.where(left, merits, -np.inf)))
            chosen.append(place)
            left[place] = False
            column = covariance[:, place]
            variance = max(covariance[place, place], 0.0) + self.noise
            covariance = covariance - np.outer(column, column) / (variance or 1.0)
        return chosen


def mean_of(several: Sequence[Expectation]) -> Expectation:
    """What models expect together, each counting as much: where they disagree, less is known.

    The variance of a mixture is the mean of its parts' and that of their means; what is alike stays so. By how much a
    model is off for all schedules alike does not count, since that says nothing of their order.

    Args:
        several: of the same schedules, in the same order; at least one, of at least one schedule.
    """
    if len(several) == 1:
        return several[0]
    offsets = np.array([each.means.mean() for each in several])
    orders = np.array([each.means for each in several]) - offsets[:, None]
    covariance = np.mean([each.covariance for each in several], axis=0)
    known = np.maximum(np.diag(covariance), _LEAST_VARIANCE)
    scale = np.sqrt(1.0 + orders.var(axis=0) / known)
    noise, best = (float(np.mean(each)) for each in zip(*((one.noise, one.best) for one in several), strict=True))
    return Expectation(orders.mean(axis=0) + offsets.mean(), covariance * np.outer(scale, scale), noise, best)


def _deviations(covariance: Array) -> Array:
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


def _log_improvement(gains: Array, deviations: Array) -> Array:
    """The logarithm of the expected improvement, which still has an order where all of them are next to nothing."""
    spread = np.maximum(deviations, 1e-9)
    scaled = gains / spread
    density = np.exp(-0.5 * scaled**2) / math.sqrt(2 * math.pi)
    below = np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in scaled])
    improvement = scaled * below + density
    # Far below the best, where the difference of the two is rounded away: Mills' ratio.
    far = scaled < -5.0
    tail = -0.5 * scaled**2 - 0.5 * math.log(2 * math.pi) - 2 * np.log(np.where(far, -scaled, 1.0))
    found = np.where(far, tail, np.log(np.where(far, 1.0, np.maximum(improvement, 1e-300))))
    return np.asarray(found + np.log(spread))
