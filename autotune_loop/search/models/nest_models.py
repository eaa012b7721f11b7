"""The models of lowered schedules that can be named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule
from halide_autotune.autotune_loop.search.models.boosted_trees import BoostedTrees, load_lightgbm
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.model import (
    ENSEMBLE,
    ENSEMBLE_OF_NESTS,
    LOWERED,
    TREE_GRU,
    TREE_GRU_OF_TIMES,
    TREES,
    TREES_OF_TIMES,
)
from halide_autotune.autotune_loop.search.models.nest_model import NestModel
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior
from halide_autotune.autotune_loop.search.models.tree_gru import TrainTreeGru, TreeGru


class FittedNestModel(Protocol):
    """What is asked of a model of lowered schedules that has learnt."""

    def expectation(self, schedules: Sequence[LoweredSchedule]) -> Expectation:
        """What is expected of schedules."""


# From what was timed and the times, and what other pipelines say.
MakeNestModel = Callable[[Sequence[LoweredSchedule], Sequence[float], NestPrior | None], FittedNestModel]


class _FittedToFeatures(Protocol):
    def expectation(self, schedules: Sequence[NestFeatures]) -> Expectation: ...


@dataclass(frozen=True)
class OfFeatures:
    """A model that sees the features of loop nests alone."""

    model: _FittedToFeatures

    def expectation(self, schedules: Sequence[LoweredSchedule]) -> Expectation:
        """See `FittedNestModel.expectation`."""
        return self.model.expectation([each.features for each in schedules])


def of_features(
    make: Callable[[Sequence[NestFeatures], Sequence[float], NestPrior | None], _FittedToFeatures],
) -> MakeNestModel:
    """What makes a model of the features of loop nests, as a model of lowered schedules."""

    def made(timed: Sequence[LoweredSchedule], times_ms: Sequence[float], prior: NestPrior | None) -> OfFeatures:
        return OfFeatures(make([each.features for each in timed], times_ms, prior))

    return made


_OF_FEATURES: Mapping[str, MakeNestModel] = {
    LOWERED: of_features(NestModel),
    TREES: of_features(BoostedTrees),
    TREES_OF_TIMES: of_features(partial(BoostedTrees, uses_ranks=False)),
}


def nest_models(name: str, train: TrainTreeGru | None = None) -> list[MakeNestModel]:
    """What makes the models of lowered schedules that count together in a run whose `--model` is this one.

    Args:
        train: what trains networks that walk loops; None where none is to be trained.

    Raises:
        UsageError: it is one of trees, and LightGBM cannot be loaded.
    """
    if name == ENSEMBLE and train is not None:
        return [nest_model(each, train) for each in ENSEMBLE_OF_NESTS]
    return [nest_model(name, train)]


def nest_model(name: str, train: TrainTreeGru | None = None) -> MakeNestModel:
    """What makes one of these models; see `nest_models`."""
    if name in (TREES, TREES_OF_TIMES):
        load_lightgbm()  # else the first attempt to learn would fail, after much was timed
    if name in (TREE_GRU, TREE_GRU_OF_TIMES) and train is not None:
        return partial(TreeGru, train=train, uses_ranks=name == TREE_GRU)
    return _OF_FEATURES.get(name, _OF_FEATURES[LOWERED])
