"""A package's model in the place of the built-in one, and what happens once it fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.search.models.model import PlugInModels, load_model
from halide_autotune.autotune_loop.search.models.plug_in_model import checked_prediction
from halide_autotune.autotune_loop.search.models.population_model import PopulationModels
from halide_autotune.autotune_loop.search.models.schedule_model import Features
from halide_autotune.autotune_loop.search.techniques.annealing import Annealing
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.search.techniques.technique import Technique
from tests.timed_drafts import learnt


class Even:
    """Somebody's model: all schedules are alike, but it knows more of some than of others."""

    def fit(self, timed: Sequence[Features], times_ms: Sequence[float]) -> None:
        self.mean = float(np.log(times_ms).mean())

    def predict(self, schedules: Sequence[Features]) -> Any:
        return [self.mean] * len(schedules), [float(place) for place in range(len(schedules))]


class CannotFit(Even):
    def fit(self, timed: Sequence[Features], times_ms: Sequence[float]) -> None:
        raise ValueError("too\nfew")


class CannotPredict(Even):
    def predict(self, schedules: Sequence[Features]) -> Any:
        raise SystemExit(1)


class PredictsTooMuch(Even):
    def predict(self, schedules: Sequence[Features]) -> Any:
        return [0.0, 0.0], [0.0, 0.0]


@pytest.mark.parametrize("name", ["lowered", "gaussian_process"])
def test_those_that_are_always_there_need_no_package(name: str) -> None:
    assert load_model(name) is None


def test_what_it_knows_least_of_is_timed_first_among_equals() -> None:
    known = learnt(20)
    model = PopulationModels(PlugInModels("lab", Even)).fitted(known)
    assert model is not None
    drafts = [one.draft for one in known.tried[:4]]
    assert model.ranking(drafts, 1) == [3, 2, 1]
    assert model.predict(drafts).shape == (4,)


def test_of_few_schedules_no_model_is_made() -> None:
    assert PopulationModels(PlugInModels("lab", CannotFit)).fitted(learnt(14)) is None


@pytest.mark.parametrize("model", [CannotFit, CannotPredict, PredictsTooMuch])
@pytest.mark.parametrize("technique", [Evolution, Annealing])
def test_one_that_fails_is_told_once_and_costs_nothing(
    model: type[Even], technique: Callable[[PopulationModels | None], Technique]
) -> None:
    told: list[str] = []
    known = learnt(30)
    faulty = technique(PopulationModels(PlugInModels("The model 'lab'", model), told.append))
    for _ in range(2):
        made = itertools.islice(faulty.propose(known, 3, Random(5)), 6)
        assert list(made) == list(itertools.islice(technique(None).propose(known, 3, Random(5)), 6))
    (text,) = told
    assert text.startswith("The model 'lab' failed, and gaussian_process replaces it in this run: ")
    assert "\n" not in text


def test_a_new_one_is_made_for_each_population() -> None:
    made: list[Even] = []

    def make() -> Even:
        made.append(Even())
        return made[-1]

    models = PopulationModels(PlugInModels("lab", make))
    known = learnt(20)
    models.fitted(known)
    models.fitted(replace(known, tried=known.tried[1:]))
    assert len(made) == 2


@pytest.mark.parametrize(
    ("prediction", "fault"),
    [
        (None, "must return two rows"),
        (([0.0, 1.0],), "must return two rows"),
        (([0.0], [0.0]), "must return 2 numbers"),
        (([0.0, "x"], [0.0, 0.0]), "could not convert"),
        (([0.0, float("nan")], [0.0, 0.0]), "finite"),
        (([0.0, 0.0], [0.0, -1.0]), "not negative"),
    ],
)
def test_a_prediction_that_is_none_is_named(prediction: object, fault: str) -> None:
    with pytest.raises((TypeError, ValueError), match=fault):
        checked_prediction(prediction, 2)
