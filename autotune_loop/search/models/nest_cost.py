"""What a schedule costs as a sum of what it does, each kind counted with a weight that was learnt.

As the cost model of Halide's autoscheduler adds up terms of what a stage does (Adams et al., Learning to Optimize
Halide with Tree Search and Random Programs, 2019, section 4.2), but for loop nests of any schedule, and with the same
weights for all pipelines. So few numbers say less of what they have seen than trees do, and more of what is unlike it:
a schedule that does twice as much takes twice as long, also where nothing alike was timed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import Array, clipped_log_times
from halide_autotune.autotune_loop.lowered.features import ACCESSES, NEST_FEATURE_NAMES, OPERATIONS

_ON_CORES = (
    *OPERATIONS,
    *ACCESSES,
    *("predicated accesses", "branches", "iterations", "iterations that wait", "loops run"),
)
_FETCHED = tuple(name for name in NEST_FEATURE_NAMES if name.startswith("bytes from beyond"))
# All that is done counts alike, memory as in the rough cost of a nest (lowered/features.py).
_RULES_OF_THUMB = {
    **dict.fromkeys(_ON_CORES, 1.0),
    "predicated accesses": 1 / 8,
    "branches": 1 / 8,
    "iterations that wait": 8.0,
    **dict.fromkeys(_FETCHED, 1 / 200),
    "bytes from beyond 32768 bytes": 1 / 16,
    "bytes from beyond 1048576 bytes": 1 / 4,
    "heap allocations": 500.0,
    "heap bytes": 0.01,
    "heap bytes from fresh pages": 1.0,
    "parallel loops run": 3000.0,
    "tasks": 100.0,
    "always": 100.0,  # whatever a schedule does takes some time
}
_NAMES = tuple(_RULES_OF_THUMB)
# Of Adam (Kingma and Ba 2015).
_STEPS, _RATE, _FADING, _FADING_OF_SQUARES = 800, 0.03, 0.9, 0.999
# How strongly weights are drawn to what they begin with, as the variance of what a sum does not explain over that of
# the weights: a kind of operation that all schedules of a pipeline do as often keeps its weight, and nearly so does one
# that few schedules have.
_DRAWN = 0.05
# No weight's logarithm comes near it.
_BEYOND_ALL = 100.0
# A schedule that is so far from what is expected counts no more than this.
_FURTHEST = 1.0


@dataclass(frozen=True)
class NestCost:
    """A sum of what schedules do.

    Attributes:
        weights: logarithms of what each kind counts.
    """

    weights: Array

    def log_costs(self, features: Array) -> Array:
        """The logarithm of what each schedule costs, in a unit of its own.

        Args:
            features: a row for each, as `NestFeatures`.
        """
        return np.asarray(np.log(_terms(features) @ np.exp(self.weights)))

    def corrected(self, features: Sequence[Array], times_ms: Sequence[Array]) -> NestCost:
        """The same, after schedules of one or several pipelines were timed.

        How long a pipeline takes as a whole is not learnt: costs are compared with times within each pipeline. A
        schedule that takes twice as long as another counts half as much, since fast ones are to be found.

        Args:
            features: of each pipeline, a row for each of its schedules.
            times_ms: of the same schedules.
        """
        terms = np.concatenate([_terms(each) for each in features])
        group = np.repeat(np.arange(len(times_ms)), [len(each) for each in times_ms])
        counts = np.concatenate([each.min() / each for each in times_ms])
        counts_of_pipelines = np.bincount(group, counts)

        def from_usual(numbers: Array) -> Array:
            return np.asarray(numbers - (np.bincount(group, counts * numbers) / counts_of_pipelines)[group])

        wanted = from_usual(np.concatenate([clipped_log_times(each) for each in times_ms]))
        weights, slope, square = self.weights.copy(), np.zeros(len(self.weights)), np.zeros(len(self.weights))
        for step in range(1, _STEPS + 1):
            parts = terms * np.exp(weights)
            costs = parts.sum(axis=1)
            # Huber's loss: its slope is the error, up to a limit.
            errors = counts * from_usual(np.clip(from_usual(np.log(costs)) - wanted, -_FURTHEST, _FURTHEST))
            gradient = (errors / costs) @ parts / counts.sum() + _DRAWN / len(terms) * (weights - self.weights)
            slope = _FADING * slope + (1 - _FADING) * gradient
            square = _FADING_OF_SQUARES * square + (1 - _FADING_OF_SQUARES) * gradient**2
            root = np.sqrt(square / (1 - _FADING_OF_SQUARES**step)) + 1e-8
            weights = weights - _RATE * slope / (1 - _FADING**step) / root
        return NestCost(weights)

    def arrays(self) -> dict[str, Any]:
        """What `read_cost` reads."""
        return {"cost_terms": np.array(_NAMES), "cost_weights": self.weights}


def read_cost(arrays: Mapping[str, Any]) -> NestCost | None:
    """The cost of a file; None if it has none, or one of other terms.

    Raises:
        ValueError: it is not what `NestCost.arrays` gives.
    """
    if "cost_terms" not in arrays or tuple(arrays["cost_terms"]) != _NAMES:
        return None
    weights = np.asarray(arrays["cost_weights"], dtype=np.float64)
    if weights.shape != (len(_NAMES),) or not (np.abs(weights) < _BEYOND_ALL).all():
        raise ValueError("what its operations cost is damaged")
    return NestCost(weights)


def rough_cost() -> NestCost:
    """What a schedule costs by rules of thumb."""
    return NestCost(np.log([*_RULES_OF_THUMB.values()]))


def _terms(features: Array) -> Array:
    """What each schedule does of each kind: a row for each, a column for each weight.

    What cores do at the same time counts once.
    """
    done = dict(zip(NEST_FEATURE_NAMES, np.exp2(features.T) - 1, strict=True))
    share = done["operations on the critical path"] / np.maximum(done["operations"], 1.0)
    done["always"] = np.ones(len(features))
    return np.column_stack([share * done[name] if name in _ON_CORES else done[name] for name in _NAMES])
