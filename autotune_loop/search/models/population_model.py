"""The model of what a population knows, for the techniques that choose by it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halide_autotune.autotune_loop.cost_model.process.child_process import ModelProcessError
from halide_autotune.autotune_loop.draft.features import features_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule
from halide_autotune.autotune_loop.search.models.expectation import mean_of
from halide_autotune.autotune_loop.search.models.model import GAUSSIAN_PROCESS, LOWERED, PlugInModels
from halide_autotune.autotune_loop.search.models.nest_models import (
    FittedNestModel,
    MakeNestModel,
    OfFeatures,
    nest_models,
)
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior
from halide_autotune.autotune_loop.search.models.plug_in_model import FittedModel, PlugInModel
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.models.schedule_model import Features, ScheduleModel
from halide_autotune.autotune_loop.specification.options import Acquisition
from halide_autotune.targets.extension_point import told

# Of fewer schedules there is nothing to learn.
ENOUGH_TIMED = 15
_RANKED_PER_WANTED = 3
_MOST_AT_ONCE = 512
# Where this many cannot be chosen from more, lowering is not worth it.
_BATCH = 8


@dataclass(frozen=True)
class PopulationModel:
    """What is known of a population's schedules; at least one of two models.

    Attributes:
        by_schedule: from what schedules say; None where too few were timed.
        by_nest: from the loop nests that they are lowered to, which tells much more and takes longer; empty without.
            All of them count together.
        acquisition: how what they do not know counts.
        all_count: `by_schedule` counts together with them, too. By itself it has chosen what is lowered in any case.
    """

    population: Population
    by_schedule: FittedModel | None
    by_nest: Sequence[FittedNestModel]
    acquisition: Acquisition = "bound"
    all_count: bool = False

    def predict(self, drafts: Sequence[Draft]) -> Array:
        """The expected logarithm of each schedule's time in milliseconds, which `by_schedule` says."""
        assert self.by_schedule is not None, "enough were timed"
        return self.by_schedule.predict(features_in(drafts, self.population))[0]

    def ranking(self, drafts: Sequence[Draft], wanted: int) -> list[int]:
        """The places of the schedules to time, the most promising first: more than are wanted, as some may be known.

        As many as is worth it are lowered: it puts them in their order, and leaves out what Halide refuses.
        """
        (places,) = self.rankings([(drafts, wanted)])
        return places

    def rankings(self, groups: Sequence[tuple[Sequence[Draft], int]]) -> list[list[int]]:
        """The same for several groups of schedules, each with how many are wanted; all are lowered together."""
        ranked = [self._by_schedule(drafts, _RANKED_PER_WANTED * wanted) for drafts, wanted in groups]
        lowering = self.population.lowering
        if not self.by_nest or lowering is None:
            return ranked
        afforded = [lowering.affordable(wanted) for _, wanted in groups]
        # Nothing is gained where what is wanted is all that can be lowered.
        chosen = [
            [drafts[place] for place in places[:most]] if most > wanted else []
            for (drafts, wanted), places, most in zip(groups, ranked, afforded, strict=True)
        ]
        nests = lowering.lowered([*itertools.chain(*chosen)]) if any(chosen) else None
        if nests is None:
            return ranked
        left = iter(nests)
        return [
            self._with_nests_first(places, drafts, [*itertools.islice(left, len(drafts))])
            for places, drafts in zip(ranked, chosen, strict=True)
        ]

    def _with_nests_first(
        self, places: Sequence[int], drafts: Sequence[Draft], nests: Sequence[LoweredSchedule | None]
    ) -> list[int]:
        """The first of the places, whose schedules were lowered, in the models' order, and then the others."""
        known = [
            (place, draft, nest) for place, draft, nest in zip(places, drafts, nests, strict=False) if nest is not None
        ]
        if not known:
            return [*places[len(nests) :]]
        expected = [model.expectation([nest for _, _, nest in known]) for model in self.by_nest]
        if self.all_count and self.by_schedule is not None:
            expected.append(
                self.by_schedule.expectation(features_in([draft for _, draft, _ in known], self.population))
            )
        order = mean_of(expected).most_promising(len(known), self.acquisition)
        return [*(known[position][0] for position in order), *places[len(nests) :]]

    def _by_schedule(self, drafts: Sequence[Draft], count: int) -> list[int]:
        if self.by_schedule is None or not drafts:
            return [*range(min(count, len(drafts)))]
        # What is expected of each depends on all others that it is chosen with, which takes memory.
        parts = -(-len(drafts) // _MOST_AT_ONCE)
        ranked = []
        for part in range(parts):
            places = range(part, len(drafts), parts)
            expected = self.by_schedule.expectation(features_in([drafts[place] for place in places], self.population))
            chosen = expected.most_promising(min(len(places), -(-count // parts)), self.acquisition)
            ranked.append([places[position] for position in chosen])
        mixed = itertools.chain.from_iterable(itertools.zip_longest(*ranked))
        return [place for place in mixed if place is not None]


class PopulationModels:
    """Fits a model to each population that it is given; what it knows of a schedule's features it keeps.

    Args:
        plug_in: a package's models; None takes the built-in one. After their first failure the built-in one has their
            place, in the same batch.
        tell: is told of that failure, once, and of one of `of_nests`.
        prior: what the loop nests of other pipelines say.
        of_nests: make the models of lowered schedules; None takes the Gaussian process.
        acquisition: how what models do not know counts.
        all_count: the model of what schedules say counts together with these.
    """

    def __init__(
        self,
        plug_in: PlugInModels | None = None,
        tell: Callable[[str], None] = lambda text: None,
        prior: NestPrior | None = None,
        *,
        of_nests: Sequence[MakeNestModel] | None = None,
        acquisition: Acquisition = "bound",
        all_count: bool = False,
    ) -> None:
        self._plug_in = plug_in
        self._tell = tell
        self._prior = prior
        self._of_others = [] if prior is None else [OfFeatures(prior)]
        self._make_nest_models = nest_models(LOWERED) if of_nests is None else of_nests
        self._acquisition, self._all_count = acquisition, all_count
        # By symbol.
        self._features: dict[str, Features] = {}
        self._nests: dict[str, LoweredSchedule | None] = {}
        self._last_of_schedules: tuple[Sequence[tuple[str, float]], FittedModel] | None = None
        self._last: tuple[Sequence[tuple[LoweredSchedule, float]], Sequence[FittedNestModel]] | None = None

    def fitted(self, population: Population) -> PopulationModel | None:
        """The model of a population's times; None if that knows too few, and other pipelines say nothing."""
        by_schedule = None if len(population.tried) < ENOUGH_TIMED else self._by_schedule(population)
        by_nest = self._by_nest(population)
        if by_schedule is None and not by_nest:
            return None
        return PopulationModel(population, by_schedule, by_nest, self._acquisition, self._all_count)

    def _by_schedule(self, population: Population) -> FittedModel:
        for one in population.tried:
            if one.symbol not in self._features:
                (self._features[one.symbol],) = features_in([one.draft], population)
        known = [(one.symbol, one.time_ms) for one in population.tried]
        # Several techniques ask for the same batch.
        if self._last_of_schedules is None or self._last_of_schedules[0] != known:
            timed, times_ms = [self._features[symbol] for symbol, _ in known], [time_ms for _, time_ms in known]
            self._last_of_schedules = known, self._of_schedules(timed, times_ms)
        return self._last_of_schedules[1]

    def _of_schedules(self, timed: Sequence[Features], times_ms: Sequence[float]) -> FittedModel:
        if self._plug_in is None:
            return ScheduleModel(timed, times_ms)
        try:
            model = self._plug_in.make()
            model.fit(timed, times_ms)
        except (Exception, SystemExit) as error:  # it is somebody else's code
            self._give_up(error)
            return ScheduleModel(timed, times_ms)
        return PlugInModel(model, timed, times_ms, self._give_up)

    def _by_nest(self, population: Population) -> Sequence[FittedNestModel]:
        lowering = population.lowering
        if lowering is None or lowering.affordable(_BATCH) <= _BATCH:
            return []
        if len(population.tried) < ENOUGH_TIMED:
            return self._of_others
        new = [one for one in population.tried if one.symbol not in self._nests]
        nests = lowering.lowered([one.draft for one in new])
        if nests is None:
            return []
        self._nests.update((one.symbol, nest) for one, nest in zip(new, nests, strict=True))
        tried = [(self._nests[one.symbol], one.time_ms) for one in population.tried]
        known = [(nest, time_ms) for nest, time_ms in tried if nest is not None]
        if len(known) < ENOUGH_TIMED:
            return self._of_others
        if self._last is None or self._last[0] != known:
            self._last = known, self._learnt(known)
        return self._last[1]

    def _learnt(self, known: Sequence[tuple[LoweredSchedule, float]]) -> list[FittedNestModel]:
        timed = [nest for nest, _ in known], [time_ms for _, time_ms in known]
        try:
            return [make(*timed, self._prior) for make in self._make_nest_models]
        except ModelProcessError as error:
            self._tell(f"{LOWERED} is the model in this run from now on: {error.message}")
            self._make_nest_models = nest_models(LOWERED)
            return [make(*timed, self._prior) for make in self._make_nest_models]

    def _give_up(self, error: BaseException) -> None:
        if self._plug_in is not None:
            self._tell(f"{self._plug_in.title} failed, and {GAUSSIAN_PROCESS} replaces it in this run: {told(error)}")
        self._plug_in = self._last_of_schedules = None


def features_in(drafts: Sequence[Draft], population: Population) -> list[Features]:
    """Each schedule's features."""
    return [features_of(DraftStructure(draft, population.names)) for draft in drafts]
