"""What several models say together that have learnt from different draws of the same schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halide_autotune.autotune_loop.gaussian_process import Array, matern
from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.nest_prior import distances, in_spreads

Counts = npt.NDArray[np.int64]
# For which schedules are alike: of the kernel, in spreads of all features; and what is not explained of two alike ones.
_LENGTH, _NOISE = 1.0, 0.1


@dataclass(frozen=True)
class Ensemble:
    """The members' common unit, which scores of ranks do not have.

    Attributes:
        lines: of each member the offset and the slope from its scores to logarithms of times.
        unsure: how many times as much as the members differ they are off.
        center, spread: of the features of what was timed.
        best: what the members expect of the fastest that was timed.
    """

    lines: Sequence[tuple[float, float]]
    unsure: float
    center: Array
    spread: Array
    best: float

    def expectation(self, scores: Array, schedules: Sequence[NestFeatures]) -> Expectation:
        """What is expected of schedules: the members' mean, and how much they differ, together where they are alike.

        Args:
            scores: member × schedule.
        """
        rows = np.array(schedules, dtype=np.float64).reshape(len(schedules), len(self.center))
        found = _in_unit(self.lines, scores)
        deviations = self.unsure * found.std(axis=0)
        scaled = in_spreads(rows - self.center, self.spread)
        alike = matern(distances(scaled, scaled) / (_LENGTH * np.sqrt(max(1, scaled.shape[1]))))
        noise = _NOISE * float((deviations**2).mean()) if len(rows) else 0.0
        return Expectation(found.mean(axis=0), np.outer(deviations, deviations) * alike, noise, self.best)


def bagged(members: int, count: int, seed: int) -> Counts:
    """How often each member learns from each of so many schedules (bagging: Breiman 1996), member × schedule."""
    source = np.random.default_rng(seed)
    return np.array([np.bincount(source.integers(0, count, count), minlength=count) for _ in range(members)])


def ensemble_of(scores: Array, log_times: Array, rows: Array, draws: Counts) -> Ensemble:
    """The common unit of members.

    Args:
        scores: member × schedule, of what they have learnt from.
        rows: the features of each.
        draws: see `bagged`.
    """
    lines = [_line(each, log_times) for each in scores]
    found = _in_unit(lines, scores)
    best = float(found.mean(axis=0).min())
    return Ensemble(lines, _unsure(found, log_times, draws), rows.mean(axis=0), rows.std(axis=0), best)


def _unsure(found: Array, log_times: Array, draws: Counts) -> float:
    """From what members say of schedules that they have not learnt from (Breiman's out-of-bag estimate)."""
    unseen = draws == 0
    judged = unseen.any(axis=0)
    differ = float(found.var(axis=0).mean())
    if not judged.any() or not differ:
        return 1.0
    means = (found * unseen).sum(axis=0)[judged] / unseen.sum(axis=0)[judged]
    return max(1.0, float(np.sqrt(((means - log_times[judged]) ** 2).mean() / differ)))


def _in_unit(lines: Sequence[tuple[float, float]], scores: Array) -> Array:
    return np.array([offset + slope * each for (offset, slope), each in zip(lines, scores, strict=True)])


def _line(scores: Array, logs: Array) -> tuple[float, float]:
    """The offset and the slope of the line from scores to the logarithms of times."""
    variance = float(scores.var())
    slope = float(((scores - scores.mean()) * (logs - logs.mean())).mean()) / variance if variance else 0.0
    return float(logs.mean()) - slope * float(scores.mean()), slope
