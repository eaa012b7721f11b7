"""The model of networks that walk loops: it learns, says what it does not know, and gives way when it cannot train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from halide_autotune.autotune_loop.cost_model.process.child_process import ModelProcessError
from halide_autotune.autotune_loop.cost_model.tree_gru.training import TreeGruProblem, train_tree_gru
from halide_autotune.autotune_loop.cost_model.tree_gru.weights import TreeGruWeights, random_weights
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.lowered.features import NEST_FEATURE_NAMES
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule, lowered_schedule
from halide_autotune.autotune_loop.search.models.model import ENSEMBLE, LOWERED, TREE_GRU, TREE_GRU_OF_TIMES
from halide_autotune.autotune_loop.search.models.nest_models import MakeNestModel, OfFeatures, nest_model, nest_models
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior
from halide_autotune.autotune_loop.search.models.population_model import PopulationModels
from halide_autotune.autotune_loop.search.models.tree_gru import TrainTreeGru, TreeGru
from halide_autotune.targets.lowering.loop_nest import VERSION, Computation, Loop, LoopNest
from tests.timed_drafts import learnt
from tests.unit.autotune_loop.search.models.test_population_model import Told


def lowered(seed: int) -> tuple[LoweredSchedule, float]:
    """A schedule of three loops side by side with its time in milliseconds, which is never four times the shortest."""
    chance = Random(seed)
    loops, time = [], 4e3
    for _ in range(3):
        extent, operations = float(chance.choice([64, 128, 256])), float(chance.choice([4, 8, 16]))
        computations = (Computation("f", {"float_add": operations}, ()),)
        loops.append(Loop("f.x", "f", "serial", extent, 0, computations, (), ()))
        time += extent * operations
    nest = LoopNest(VERSION, 32, Loop("", "", "root", 1.0, 0, (), (), tuple(loops)))
    return lowered_schedule(nest, 2), time / 1e3


@pytest.fixture(params=[TREE_GRU, TREE_GRU_OF_TIMES])
def make(request: pytest.FixtureRequest) -> MakeNestModel:
    return nest_model(request.param, train_tree_gru)


@pytest.mark.toolchain
@pytest.mark.usefixtures("tensorflow_ready")
def test_it_orders_what_it_has_not_seen_and_says_how_sure_it_is(make: MakeNestModel) -> None:
    known, unseen = [lowered(seed) for seed in range(60)], [lowered(1000 + seed) for seed in range(40)]
    model = make([one for one, _ in known], [time_ms for _, time_ms in known], None)
    expected = model.expectation([one for one, _ in unseen])
    logs = np.log([time_ms for _, time_ms in unseen])
    pairs = [(i, j) for i in range(40) for j in range(i) if abs(logs[i] - logs[j]) > 0.1]
    assert np.mean([(expected.means[i] < expected.means[j]) == (logs[i] < logs[j]) for i, j in pairs]) > 0.85
    assert np.abs(expected.means - logs).mean() < 0.3, "in logarithms of milliseconds"
    assert (expected.deviations > 0).all()
    assert expected.best == pytest.approx(np.log(min(time_ms for _, time_ms in known)), abs=0.4)
    assert len({*expected.most_promising(10)}) == 10
    assert model.expectation([]).most_promising(5) == []


@pytest.mark.toolchain
@pytest.mark.usefixtures("tensorflow_ready")
def test_it_knows_what_other_pipelines_say() -> None:
    asked: list[TreeGruProblem] = []

    def train(problem: TreeGruProblem) -> TreeGruWeights:
        asked.append(problem)
        return train_tree_gru(problem)

    known = [lowered(seed) for seed in range(20)]
    rows = np.linspace(-2.0, 2.0, 40)[:, None] * np.ones((1, len(NEST_FEATURE_NAMES)))
    prior = NestPrior(rows, rows[:, 0], 5.0, 0.1)
    TreeGru([one for one, _ in known], [time_ms for _, time_ms in known], prior, train=train)
    features = np.array([one.features for one, _ in known])
    assert sorted(asked[0].foreseen) == pytest.approx(sorted(prior.expected(features, features.mean(axis=0))))


class Lowered(Told):
    """As it is told, with a loop nest."""

    def lowered(self, drafts: Sequence[Draft]) -> list[LoweredSchedule | None] | None:
        found, packed = super().lowered(drafts) or [], lowered(1)[0].packed
        return [None if one is None else replace(one, packed=packed) for one in found]


def killed(problem: TreeGruProblem) -> TreeGruWeights:
    raise ModelProcessError("The cost-model process was killed by signal 9.")


def lost(problem: TreeGruProblem) -> TreeGruWeights:
    return replace(random_weights(4, seed=1), cost=np.full_like(random_weights(4, seed=1).cost, np.nan))


@pytest.mark.parametrize("name", [TREE_GRU, ENSEMBLE])
@pytest.mark.parametrize(("train", "why"), [(killed, "killed by signal 9"), (lost, "nothing that is a number")])
def test_where_it_cannot_be_trained_another_model_has_its_place(train: TrainTreeGru, why: str, name: str) -> None:
    told: list[str] = []

    models = PopulationModels(tell=told.append, of_nests=nest_models(name, train))
    population = replace(learnt(40), lowering=Lowered())
    for _ in range(2):
        fitted = models.fitted(population)
        assert fitted is not None and [type(each) for each in fitted.by_nest] == [OfFeatures]
    assert len(told) == 1 and told[0].startswith(f"{LOWERED} is the model in this run from now on: ") and why in told[0]


def test_techniques_of_one_batch_share_what_was_learnt() -> None:
    asked: list[TreeGruProblem] = []

    def train(problem: TreeGruProblem) -> TreeGruWeights:
        asked.append(problem)
        return random_weights(4, seed=1)

    models = PopulationModels(of_nests=nest_models(TREE_GRU, train))
    population = replace(learnt(40), lowering=Lowered())
    for _ in range(2):
        models.fitted(population)
    assert len(asked) == 1
    models.fitted(replace(population, tried=population.tried[:-1]))
    assert len(asked) == 2


def test_an_ensemble_has_them_beside_the_usual_model_if_they_can_be_trained() -> None:
    population = replace(learnt(40), lowering=Lowered())
    for train, count in ((lambda problem: random_weights(4, seed=1), 2), (None, 1)):
        fitted = PopulationModels(of_nests=nest_models(ENSEMBLE, train)).fitted(population)
        assert fitted is not None and len(fitted.by_nest) == count and isinstance(fitted.by_nest[0], OfFeatures)


def test_without_a_process_to_train_in_its_name_stands_for_the_usual_model() -> None:
    known = [lowered(seed) for seed in range(20)]
    model = nest_model(TREE_GRU)([one for one, _ in known], [time_ms for _, time_ms in known], None)
    assert isinstance(model, OfFeatures)
