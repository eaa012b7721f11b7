"""The techniques that can be named: those that are always there, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from random import Random

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.search.models.model import ENSEMBLE, load_model
from halide_autotune.autotune_loop.search.models.nest_models import nest_models
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.models.population_model import PopulationModels
from halide_autotune.autotune_loop.search.models.tree_gru import TrainTreeGru
from halide_autotune.autotune_loop.search.techniques.annealing import Annealing
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.search.techniques.pattern import PatternSearch
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Proposal, Technique
from halide_autotune.autotune_loop.specification.options import SearchOptions
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.targets.extension_point import ExtensionPoint

# An entry point leads to a class or function without arguments that makes a `Technique`.
TECHNIQUES = ExtensionPoint(
    group="halide_autotune.techniques",
    noun="technique",
    protocol="sdk.Technique",
    methods=("propose",),
    built_in=tuple(TechniqueName),
    remedy="leave it out of --technique",
)
# Of one that proposes without end what is known already.
_MOST_PER_WANTED = 1000


def load_techniques(
    asked: SearchOptions,
    tell: Callable[[str], None] = lambda text: None,
    prior: NestPrior | None = None,
    train: TrainTreeGru | None = None,
) -> Mapping[str, Technique]:
    """The techniques that are asked for and propose schedules as data: all but Halide's own search.

    Args:
        tell: is told once, as a warning, if a package's model fails.
        prior: what the loop nests of other pipelines say, where schedules are lowered.
        train: what trains networks that walk loops, where the run's model has some.

    Raises:
        UsageError: there is no technique, or no model, of a name, or a package's cannot be imported or made.
    """
    TECHNIQUES.refuse_taken(asked.technique)
    models = PopulationModels(
        load_model(asked.model),
        tell,
        prior,
        of_nests=nest_models(asked.model, train),
        acquisition=asked.acquisition,
        all_count=asked.model == ENSEMBLE,
    )
    starts = Starts()
    built_in: dict[str, Technique] = {
        TechniqueName.SKETCHES: starts,
        TechniqueName.EVOLUTION: Evolution(models, starts),
        TechniqueName.ANNEALING: Annealing(models, starts),
        TechniqueName.PATTERN: PatternSearch(models, starts),
    }
    named = [name for name in asked.technique if name != TechniqueName.SAMPLING]
    return {name: built_in.get(name) or _plug_in(name) for name in named}


def _plug_in(name: str) -> PlugInTechnique:
    return PlugInTechnique(TECHNIQUES.make(name), TECHNIQUES.title(name))


@dataclass(frozen=True)
class PlugInTechnique:
    """A package's technique, of which nothing comes that the loop could stumble over.

    Attributes:
        title: what messages call it.
    """

    technique: Technique
    title: str

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        """See `Technique.propose`.

        Raises:
            TypeError: it yields something else than a `Proposal`.
        """
        for proposal in islice(self.technique.propose(population, count, source), _MOST_PER_WANTED * count):
            yield checked_proposal(proposal)


def checked_proposal(proposal: object) -> Proposal:
    """A package's proposal, with the types that the run's record needs.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(proposal, Proposal) or not isinstance(proposal.draft, Draft):
        raise TypeError(f"`propose` must yield sdk.Proposals of sdk.Drafts, and yields {type(proposal).__name__}")
    parents, moves = tuple(proposal.parents), tuple(proposal.moves)
    if not all(isinstance(text, str) for text in (*parents, *moves)):
        raise TypeError("the parents and the moves of a Proposal must be texts")
    return Proposal(proposal.draft, parents, moves)
