"""The models of lowered schedules that can be named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.search.models.boosted_trees import BoostedTrees, check_lightgbm
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.model import LOWERED, LOWERED_PROCESS, TREES, TREES_OF_TIMES
from halide_autotune.autotune_loop.search.models.nest_model import NestModel
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior
from halide_autotune.targets.errors import UsageError


class FittedNestModel(Protocol):
    """What is asked of a model of lowered schedules that has learnt."""

    def expectation(self, schedules: Sequence[NestFeatures]) -> Expectation:
        """What is expected of schedules."""


# From the features and the times of what was timed, and what other pipelines say.
MakeNestModel = Callable[[Sequence[NestFeatures], Sequence[float], NestPrior | None], FittedNestModel]


def trees_of_times(timed: Sequence[NestFeatures], times_ms: Sequence[float], prior: NestPrior | None) -> BoostedTrees:
    """Boosted trees that learn the times themselves."""
    return BoostedTrees(timed, times_ms, prior, uses_ranks=False)


class ProcessAndTrees:
    """The mean of a Gaussian process, which knows how far it is from what was timed, and of boosted trees, which find
    the few numbers that count: on recorded pools it needs fewer trials than either (benchmarks/pool_ablation.py).
    """

    def __init__(self, timed: Sequence[NestFeatures], times_ms: Sequence[float], prior: NestPrior | None) -> None:
        # What other pipelines say helps the process; to trees it is one number of many.
        self._process, self._trees = NestModel(timed, times_ms, prior), BoostedTrees(timed, times_ms)
        self._best = float(self._averaged(timed).means.min())

    def expectation(self, schedules: Sequence[NestFeatures]) -> Expectation:
        """See `FittedNestModel.expectation`."""
        return replace(self._averaged(schedules), best=self._best)

    def _averaged(self, schedules: Sequence[NestFeatures]) -> Expectation:
        return self._process.expectation(schedules).averaged(self._trees.expectation(schedules))


NEST_MODELS: Mapping[str, MakeNestModel] = {
    LOWERED: ProcessAndTrees,
    LOWERED_PROCESS: NestModel,
    TREES: BoostedTrees,
    TREES_OF_TIMES: trees_of_times,
}


def nest_model(name: str, tell: Callable[[str], None] = lambda text: None) -> MakeNestModel:
    """What makes the models of lowered schedules of a run whose `--model` is this one.

    Args:
        tell: is told, as a warning, where the usual model does without its trees.

    Raises:
        UsageError: a model of trees is asked for, and LightGBM cannot be loaded.
    """
    made = NEST_MODELS.get(name, NestModel)
    if made is NestModel:
        return made
    try:
        check_lightgbm()
    except UsageError as error:
        if name != LOWERED:
            raise
        tell(f"{error} {LOWERED_PROCESS} takes its place in this run.")
        return NestModel
    return made
