"""The models of lowered schedules that can be named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.search.models.boosted_trees import BoostedTrees, check_lightgbm
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.model import LOWERED, TREES, TREES_OF_TIMES
from halide_autotune.autotune_loop.search.models.nest_model import NestModel
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior


class FittedNestModel(Protocol):
    """What is asked of a model of lowered schedules that has learnt."""

    def expectation(self, schedules: Sequence[NestFeatures]) -> Expectation:
        """What is expected of schedules."""


# From the features and the times of what was timed, and what other pipelines say.
MakeNestModel = Callable[[Sequence[NestFeatures], Sequence[float], NestPrior | None], FittedNestModel]


def trees_of_times(timed: Sequence[NestFeatures], times_ms: Sequence[float], prior: NestPrior | None) -> BoostedTrees:
    """Boosted trees that learn the times themselves."""
    return BoostedTrees(timed, times_ms, prior, uses_ranks=False)


NEST_MODELS: Mapping[str, MakeNestModel] = {LOWERED: NestModel, TREES: BoostedTrees, TREES_OF_TIMES: trees_of_times}


def nest_model(name: str) -> MakeNestModel:
    """What makes the models of lowered schedules of a run whose `--model` is this one.

    Raises:
        UsageError: it is one of trees, and LightGBM cannot be loaded.
    """
    made = NEST_MODELS.get(name, NestModel)
    if made is not NestModel:
        check_lightgbm()
    return made
