"""What a model of schedules must keep to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.search.models.model import MODELS, ScheduleCostModel
from halide_autotune.autotune_loop.search.models.plug_in_model import checked_prediction
from halide_autotune.autotune_loop.search.models.population_model import ENOUGH_TIMED, features_in
from halide_autotune.autotune_loop.search.models.schedule_model import Features
from halide_autotune.sdk.contracts.require import require
from halide_autotune.sdk.contracts.sample_population import sample_population
from halide_autotune.targets.extension_point import told

_TIMED = 60


def check_model(model: str | Callable[[], ScheduleCostModel]) -> None:
    """Check that a model can rank the proposals of a run.

    Args:
        model: the name of its entry point; or the class or function that the entry point leads to.

    Raises:
        AssertionError: it does not keep to something; the message says to what.
        UsageError: there is none of that name, or it cannot be imported or made.
    """
    name, make = ("it", model) if callable(model) else (model, MODELS.load(model))

    def learnt(timed: Sequence[Features], times_ms: Sequence[float]) -> ScheduleCostModel:
        made: ScheduleCostModel = MODELS.checked(name, make)
        return _fit(made, timed, times_ms)

    population = sample_population(_TIMED)
    features = features_in([one.draft for one in population.tried], population)
    times_ms = [one.time_ms for one in population.tried]
    fitted = learnt(features, times_ms)
    means, deviations = _predict(fitted, features)
    # Ranks are compared, whatever the model's scale; equal predictions have no order.
    order = np.corrcoef(np.argsort(np.argsort(means)), np.log(times_ms))[0, 1] if np.ptp(means) > 0 else 0.0
    require(order > 0, "predict must give longer times to most of the slower schedules that fit was given")
    again = _predict(learnt(features, times_ms), features)
    is_equal = np.array_equal(again[0], means) and np.array_equal(again[1], deviations)
    require(is_equal, "predict must give the same after the same fit")
    _fit(fitted, features[:ENOUGH_TIMED], times_ms[:ENOUGH_TIMED])
    fewer = _predict(learnt(features[:ENOUGH_TIMED], times_ms[:ENOUGH_TIMED]), features)
    require(np.array_equal(_predict(fitted, features)[0], fewer[0]), "fit must forget what it was given before")
    _predict(learnt(features, [2.0] * len(features)), features)
    _check_other_funcs(fitted, features[0])
    require(_predict(fitted, [])[0].shape == (0,), "predict must take no schedules, too")


def _check_other_funcs(model: ScheduleCostModel, schedule: Features) -> None:
    """Some schedules have wrappers, and are without what others have."""
    first, *others = schedule
    _predict(model, [{name: schedule[name] for name in others}, {**schedule, f"{first}_wrapper": schedule[first]}])


def _fit(model: ScheduleCostModel, timed: Sequence[Features], times_ms: Sequence[float]) -> ScheduleCostModel:
    try:
        model.fit(timed, times_ms)
    except Exception as error:
        raise AssertionError(f"fit must not fail with {len(timed)} schedules; it does: {told(error)}") from error
    return model


def _predict(model: ScheduleCostModel, schedules: Sequence[Features]) -> tuple[Array, Array]:
    try:
        return checked_prediction(model.predict(schedules), len(schedules))
    except Exception as error:
        raise AssertionError(
            f"predict must not fail with {len(schedules)} schedules; it does: {told(error)}"
        ) from error
