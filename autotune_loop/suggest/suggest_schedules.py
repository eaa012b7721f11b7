"""Chooses schedules for a pipeline without timing any: starting schedules and one generation of their children.

In a run a model is followed for many generations, since times correct it. Here nothing does: by the tenth generation it
has been led to schedules that it is wrong about (docs/measured/models.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior
from halide_autotune.autotune_loop.search.models.population import Population, Tried
from halide_autotune.autotune_loop.search.models.population_model import PopulationModels
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Proposal
from halide_autotune.autotune_loop.suggest.lowered_once import LoweredOnce
from halide_autotune.autotune_loop.suggest.suggestion import Suggestion, Suggestions
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation
from halide_autotune.targets.pipeline.shape import PipelineShape
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_PARENTS, _CHILDREN = 8, 16
# As a logarithm: of many children those that the model thinks too well of stand out, so they must promise more.
_LESS_SURE_OF_CHILDREN = math.log(1.05)
# Chance is the same each time, so that the same is suggested.
_SEED = 0


@dataclass(frozen=True)
class OpenedPipeline:
    """A generator's pipeline, and what belongs to it.

    Attributes:
        function_name: without namespaces.
        cores: that parallel loops run on.
    """

    inspected: Inspected
    preparation: PipelinePreparation
    compiler: HostCppCompiler
    shape: PipelineShape
    function_name: str
    cores: int


@dataclass(frozen=True)
class _Compared:
    """A schedule that was lowered.

    Attributes:
        made_by: see `Suggestion`.
    """

    draft: Draft
    made_by: tuple[str, ...]
    lowered: LoweredSchedule


def suggest_schedules(
    pipeline: OpenedPipeline, prior: NestPrior, count: int, tell: Callable[[str], None] = lambda text: None
) -> Suggestions:
    """The schedules of a pipeline to try first.

    Args:
        prior: what the loop nests of other pipelines say.
        count: how many are wanted; there may be fewer.
        tell: is called with a phrase before what may take long.

    Raises:
        GeneratorError: the generator fails, or Halide refuses every schedule.
        ToolchainError: no C++ compiler is installed.
    """
    names = PipelineNames(pipeline.shape)

    def schedule(draft: Draft) -> Schedule:
        return schedule_of(draft, names, pipeline.function_name)

    def text_of(draft: Draft) -> str:
        return print_json(schedule(draft))

    lowering = LoweredOnce(pipeline.inspected, pipeline.preparation, pipeline.compiler, text_of, pipeline.cores)
    population, source = Population(names, (), {}, pipeline.cores, lowering=lowering), Random(_SEED)
    tell("comparing starting schedules")
    starts = [*Starts().propose(population, count, source)]
    lowering.lowered([start.draft for start in starts])
    compared = [*_compared(starts, {}, lowering)]
    if not compared:
        name = pipeline.inspected.generator_name
        raise GeneratorError(
            f"Halide refuses every schedule that could be suggested for generator {name}: {lowering.first_refusal}",
            next_step="Let one of Halide's autoschedulers choose: sdk build --schedule mullapudi2016.",
        )
    tell("comparing what they can be changed to")
    starts_count = len(compared)
    parents = _parents(compared, _expected(compared, starts_count, prior))
    made_by = {str(place): one.made_by for place, one in enumerate(compared)}
    evolution = Evolution(PopulationModels(prior=prior))
    children = [*evolution.propose(replace(population, tried=parents), max(_CHILDREN, count), source)]
    compared += _compared(children, made_by, lowering)
    expected = _expected(compared, starts_count, prior)
    behind = expected.means - expected.means.min()
    comment = (
        f"Suggested for target={pipeline.inspected.halide_target}, parallelism {pipeline.cores}, and not timed.",
    )
    first = [
        Suggestion(
            print_header(schedule(compared[place].draft), pipeline.function_name, comment=comment),
            compared[place].made_by,
            math.exp(behind[place]),
        )
        for place in _to_try(expected, starts_count, count)
    ]
    refused = len(lowering.known) - len(compared)
    return Suggestions(pipeline.function_name, tuple(first), len(compared), refused, pipeline.cores)


def _compared(
    proposals: Sequence[Proposal], made_by: Mapping[str, tuple[str, ...]], lowering: LoweredOnce
) -> Iterator[_Compared]:
    """Those of the proposals that were lowered.

    Args:
        made_by: of the parents that they name.
    """
    for one in proposals:
        lowered = lowering.of(one.draft)
        if lowered is not None:
            first = made_by[one.parents[0]] if one.parents else ()
            yield _Compared(one.draft, (*first, *one.moves), lowered)


def _expected(compared: Sequence[_Compared], starts_count: int, prior: NestPrior) -> Expectation:
    """What is expected of starting schedules, which come first, and of their children."""
    expected = prior.expectation([one.lowered.features for one in compared])
    is_child = np.arange(len(compared)) >= starts_count
    return replace(expected, means=expected.means + _LESS_SURE_OF_CHILDREN * is_child)


def _parents(compared: Sequence[_Compared], expected: Expectation) -> list[Tried]:
    """The most promising, known by their places, as if what is expected of them had been timed."""
    places = sorted(range(len(compared)), key=lambda place: expected.means[place])[:_PARENTS]
    return [Tried(str(place), compared[place].draft, math.exp(expected.means[place])) for place in places]


def _to_try(expected: Expectation, starts_count: int, count: int) -> list[int]:
    """The schedule that is expected to be the fastest, and others that differ; the most promising first.

    By turns starting schedules, in their own order, and what the model thinks may be fast: of the former the best of
    the first four is good, also where the model knows nothing like the pipeline.

    Args:
        starts_count: so many of the schedules, which come first, are starting schedules.
    """
    means = expected.means
    by_turns = itertools.chain(*itertools.zip_longest(range(starts_count), expected.most_promising(count)))
    places = dict.fromkeys([int(means.argmin()), *(place for place in by_turns if place is not None)])
    return sorted([*places][:count], key=lambda place: means[place])
