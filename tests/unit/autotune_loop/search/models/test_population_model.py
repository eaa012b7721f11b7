"""Where schedules are lowered, their loop nests decide which are timed; what Halide refuses is left out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.draft.factors import factors_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule
from halide_autotune.autotune_loop.search.models import population_model
from halide_autotune.autotune_loop.search.models.expectation import CURIOSITY, Expectation
from halide_autotune.autotune_loop.search.models.nest_model import NestModel
from halide_autotune.autotune_loop.search.models.nest_models import OfFeatures
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.models.population_model import (
    ENOUGH_TIMED,
    PopulationModel,
    PopulationModels,
    features_in,
)
from halide_autotune.autotune_loop.search.models.schedule_model import ScheduleModel
from halide_autotune.autotune_loop.search.techniques.annealing import Annealing
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from tests.timed_drafts import learnt


def factors_ms(draft: Draft) -> float:
    """A time that follows from a schedule: the larger its tiles are, the longer it takes."""
    return 1.0 + sum(math.log2(factor) for factor in factors_of(draft).values())


def timed(count: int) -> Population:
    """So many schedules with these times."""
    population = learnt(count)
    tried = [replace(one, time_ms=factors_ms(one.draft)) for one in population.tried]
    return replace(population, tried=sorted(tried, key=lambda one: one.time_ms))


@dataclass
class Told:
    """Lowers as it is told: the features say what the time follows from.

    Attributes:
        refuses: drafts that Halide does not take.
        fails: nothing can be lowered.
        per_wanted: so many are worth it.
        asked: every draft, as often as it was asked for.
        times: that something was asked for.
    """

    refuses: Sequence[Draft] = ()
    fails: bool = False
    per_wanted: float = 3
    asked: list[Draft] = field(default_factory=list)
    times: int = 0

    def affordable(self, wanted: int) -> int:
        return int(self.per_wanted * wanted)

    def lowered(self, drafts: Sequence[Draft]) -> list[LoweredSchedule | None] | None:
        self.asked += drafts
        self.times += 1
        if self.fails:
            return None
        return [
            None if draft in self.refuses else LoweredSchedule((factors_ms(draft), 1.0), b"", 2) for draft in drafts
        ]


def fitted(population: Population) -> PopulationModel:
    model = PopulationModels().fitted(population)
    assert model is not None
    return model


def children(population: Population, count: int = 30) -> list[Draft]:
    made = Evolution().propose(replace(population, lowering=None), count, Random(5))
    return [child.draft for child in made][:count]


def are_ordered(times_ms: Sequence[float]) -> bool:
    """Whether the first third has the shortest times, which are not those of the last."""
    third = len(times_ms) // 3
    shortest_ms = sum(sorted(times_ms)[:third])
    return sum(times_ms[:third]) <= 1.05 * shortest_ms < sum(times_ms[-third:])


def test_the_loop_nests_give_the_order() -> None:
    population = replace(timed(40), lowering=Told())
    drafts = children(population)
    places = fitted(population).ranking(drafts, len(drafts))
    assert sorted(places) == [*range(len(drafts))]
    assert are_ordered([factors_ms(drafts[place]) for place in places])


class Contrary:
    """Takes what is slower to be a little faster."""

    def expectation(self, schedules: Sequence[LoweredSchedule]) -> Expectation:
        means = np.array([-0.001 * each.features[0] for each in schedules])
        return Expectation(means, 1e-9 * np.eye(len(schedules)), 0.0, 0.0)


def test_where_all_count_what_schedules_say_is_weighed_with_their_loop_nests() -> None:
    population = replace(timed(40), lowering=Told())
    drafts, by_schedule = children(population), fitted(population).by_schedule
    for all_count in (False, True):
        model = PopulationModel(population, by_schedule, [Contrary()], all_count=all_count)
        times_ms = [factors_ms(drafts[place]) for place in model.ranking(drafts, len(drafts))]
        assert (sum(times_ms[:10]) < sum(times_ms[-10:])) is all_count


def test_only_those_that_schedules_speak_for_are_lowered() -> None:
    population = replace(timed(40), lowering=(told := Told(per_wanted=2)))
    drafts = children(population)
    model = fitted(population)
    told.asked.clear()
    places = model.ranking(drafts, 5)
    assert len(places) == 15 and len(told.asked) == 10
    plain = fitted(replace(population, lowering=None)).ranking(drafts, 5)
    assert {*places[:10]} == {*plain[:10]} and places[10:] == plain[10:], "the others come behind, as they were"


def test_of_many_only_so_many_are_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    population = timed(40)
    drafts, model, asked = children(population), fitted(population), list[int]()
    assert model.by_schedule is not None
    of_all = model.by_schedule.expectation(features_in(drafts, population))
    promise = CURIOSITY * of_all.deviations - of_all.means
    expectation = ScheduleModel.expectation

    def counted(self: ScheduleModel, schedules: Sequence[Any]) -> Any:
        asked.append(len(schedules))
        return expectation(self, schedules)

    monkeypatch.setattr(ScheduleModel, "expectation", counted)
    monkeypatch.setattr(population_model, "_MOST_AT_ONCE", 12)
    places = model.ranking(drafts, 5)
    assert asked == [10, 10, 10] and len({*places}) == len(places) == 15
    of_each = [float(promise[part::3].max()) for part in range(3)]
    assert [promise[place] for place in places[:3]] == pytest.approx(of_each), "each part's most promising come first"


def test_several_groups_are_lowered_together_and_ranked_each_by_itself() -> None:
    population = replace(timed(40), lowering=(told := Told(per_wanted=2)))
    drafts = children(population)
    groups = [(drafts[:20], 3), (drafts[20:21], 1), (drafts[21:], 2)]
    model = fitted(population)
    expected = [model.ranking(*group) for group in groups]
    told.asked.clear()
    told.times = 0
    assert model.rankings(groups) == expected
    assert told.times == 1 and len(told.asked) == 6 + 1 + 4


def test_a_model_of_schedules_is_fitted_once_for_the_same_times() -> None:
    models, population = PopulationModels(), timed(40)
    first, again, later = (models.fitted(one) for one in (population, population, timed(41)))
    assert first is not None and again is not None and later is not None
    assert again.by_schedule is first.by_schedule and later.by_schedule is not first.by_schedule


def test_where_lowering_takes_too_long_nothing_is_lowered() -> None:
    population = replace(timed(40), lowering=(told := Told(per_wanted=1)))
    drafts = children(population)
    assert fitted(population).ranking(drafts, 5) == fitted(replace(population, lowering=None)).ranking(drafts, 5)
    assert not told.asked


def test_what_halide_refuses_is_left_out() -> None:
    population = timed(40)
    drafts = children(population)
    refusing = replace(population, lowering=Told(refuses=drafts[:7]))
    assert sorted(fitted(refusing).ranking(drafts, len(drafts))) == [
        place for place, draft in enumerate(drafts) if draft not in drafts[:7]
    ]


def test_without_loop_nests_schedules_alone_decide() -> None:
    plain = timed(40)
    drafts = children(plain)
    expected = fitted(plain).ranking(drafts, 10)
    failing, refused = Told(fails=True), Told(refuses=[one.draft for one in plain.tried[ENOUGH_TIMED - 1 :]])
    for told in (failing, refused):
        assert fitted(replace(plain, lowering=told)).ranking(drafts, 10) == expected
    dying = Told()
    model = fitted(replace(plain, lowering=dying))
    dying.fails = True
    assert model.ranking(drafts, 10) == expected, "it failed after the model was made"


# What other pipelines say


class Prior(NestPrior):
    """The larger the first number, the longer it takes."""

    def __init__(self) -> None:
        rows = np.linspace(-4, 4, 40)
        super().__init__(np.stack([rows, 0 * rows], axis=1), 0.2 * rows, 1.0, 0.05)


def test_before_enough_is_timed_other_pipelines_give_the_order() -> None:
    plain, told = timed(40), Told()
    drafts = children(plain)
    new = replace(plain, tried=plain.tried[:3], lowering=told)
    model = PopulationModels(prior=Prior()).fitted(new)
    assert model is not None and model.by_schedule is None
    places = model.ranking(drafts, len(drafts))
    assert len(told.asked) == len(drafts) == len(places)
    times_ms = [factors_ms(drafts[place]) for place in places]
    assert sum(times_ms[:5]) < sum(times_ms[-5:])
    assert PopulationModels(prior=Prior()).fitted(replace(new, lowering=None)) is None, "they say it of loop nests"


def test_what_was_timed_corrects_other_pipelines() -> None:
    population = replace(timed(40), lowering=Told())
    drafts = children(population)
    model = PopulationModels(prior=Prior()).fitted(population)
    assert model is not None
    (by_nest,) = model.by_nest
    assert isinstance(by_nest, OfFeatures) and isinstance(by_nest.model, NestModel)
    assert are_ordered([factors_ms(drafts[place]) for place in model.ranking(drafts, len(drafts))])


def test_annealing_waits_for_a_model_that_needs_no_lowering() -> None:
    few = replace(timed(10), lowering=Told())
    annealed = Annealing(PopulationModels(prior=Prior())).propose(few, 4, Random(3))
    assert list(annealed) == list(Evolution(PopulationModels(prior=Prior())).propose(few, 4, Random(3)))


def test_evolution_proposes_what_the_nests_speak_for() -> None:
    population = replace(timed(40), lowering=(told := Told()))
    made = [child.draft for child in Evolution().propose(population, 6, Random(2))]
    lowered = told.asked[len(population.tried) :]
    assert made[0] in lowered and len(lowered) >= 12
    assert statistics.mean(map(factors_ms, made[:4])) < statistics.mean(map(factors_ms, lowered))
