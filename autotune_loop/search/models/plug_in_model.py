"""A package's model in the place of the built-in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.model import ScheduleCostModel
from halide_autotune.autotune_loop.search.models.schedule_model import Features, ScheduleModel


class FittedModel(Protocol):
    """What techniques ask of a model that has learnt."""

    def predict(self, schedules: Sequence[Features]) -> tuple[Array, Array]:
        """See `ScheduleCostModel.predict`."""

    def expectation(self, schedules: Sequence[Features]) -> Expectation:
        """What is expected of schedules."""


class PlugInModel:
    """A package's model; once it fails, the built-in one answers, which has learnt from the same times.

    Args:
        model: has learnt from the schedules that were timed.
        failed: is told of the failure.
    """

    def __init__(
        self,
        model: ScheduleCostModel,
        timed: Sequence[Features],
        times_ms: Sequence[float],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._model: ScheduleCostModel | None = model
        self._timed = timed
        self._times_ms = times_ms
        self._failed = failed

    def predict(self, schedules: Sequence[Features]) -> tuple[Array, Array]:
        """See `FittedModel.predict`."""
        found = self._asked(schedules)
        return self._built_in.predict(schedules) if found is None else found

    def expectation(self, schedules: Sequence[Features]) -> Expectation:
        """See `FittedModel.expectation`: which schedules are alike, it does not tell."""
        found, known = self._asked(schedules), self._asked(self._timed)
        if found is None or known is None:
            return self._built_in.expectation(schedules)
        means, deviations = found
        return Expectation(means, np.diag(deviations**2), 0.0, float(known[0].min()))

    def _asked(self, schedules: Sequence[Features]) -> tuple[Array, Array] | None:
        if self._model is None:
            return None
        try:
            return checked_prediction(self._model.predict(schedules), len(schedules))
        except (Exception, SystemExit) as error:  # it is somebody else's code
            self._model = None
            self._failed(error)
            return None

    @cached_property
    def _built_in(self) -> ScheduleModel:
        return ScheduleModel(self._timed, self._times_ms)


def checked_prediction(prediction: object, count: int) -> tuple[Array, Array]:
    """What a model predicts of so many schedules, as two rows of numbers.

    Raises:
        ValueError, TypeError: it is something else.
    """
    if not isinstance(prediction, tuple) or len(prediction) != 2:
        raise TypeError("`predict` must return two rows of numbers: the expected logarithms, and their deviations")
    means, deviations = (np.asarray(row, dtype=np.float64) for row in prediction)
    if means.shape != (count,) or deviations.shape != (count,):
        raise ValueError(f"`predict` must return {count} numbers and {count} deviations for {count} schedules")
    if not (np.isfinite(means).all() and np.isfinite(deviations).all() and (deviations >= 0).all()):
        raise ValueError("`predict` must return finite numbers, and deviations that are not negative")
    return means, deviations
