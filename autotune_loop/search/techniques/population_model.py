"""The model of what a population knows, for the techniques that choose by it."""

from __future__ import annotations

from collections.abc import Sequence

from halide_autotune.autotune_loop.draft.features import features_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.search.techniques.schedule_model import Features, ScheduleModel
from halide_autotune.autotune_loop.search.techniques.technique import Population

# Of fewer schedules there is nothing to learn.
ENOUGH_TIMED = 15


class PopulationModels:
    """Fits a model to each population that it is given; what it knows of a schedule's features it keeps."""

    def __init__(self) -> None:
        # By symbol.
        self._features: dict[str, Features] = {}

    def fitted(self, population: Population) -> ScheduleModel | None:
        """The model of a population's times; None if that knows too few."""
        if len(population.tried) < ENOUGH_TIMED:
            return None
        for one in population.tried:
            if one.symbol not in self._features:
                (self._features[one.symbol],) = features_in([one.draft], population)
        timed = [self._features[one.symbol] for one in population.tried]
        return ScheduleModel(timed, [one.time_ms for one in population.tried])


def features_in(drafts: Sequence[Draft], population: Population) -> list[Features]:
    """Each schedule's features."""
    return [features_of(DraftStructure(draft, population.names)) for draft in drafts]
