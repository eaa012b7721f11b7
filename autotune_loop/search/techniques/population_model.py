"""The model of what a population knows, for the techniques that choose by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halide_autotune.autotune_loop.draft.features import features_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.search.techniques.models import GAUSSIAN_PROCESS, PlugInModels
from halide_autotune.autotune_loop.search.techniques.plug_in_model import FittedModel, PlugInModel
from halide_autotune.autotune_loop.search.techniques.schedule_model import Features, ScheduleModel
from halide_autotune.autotune_loop.search.techniques.technique import Population
from halide_autotune.targets.extension_point import told

# Of fewer schedules there is nothing to learn.
ENOUGH_TIMED = 15


class PopulationModels:
    """Fits a model to each population that it is given; what it knows of a schedule's features it keeps.

    Args:
        plug_in: a package's models; None takes the built-in one. After their first failure the built-in one has their
            place, in the same batch.
        tell: is told of that failure, once.
    """

    def __init__(
        self,
        plug_in: PlugInModels | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._plug_in = plug_in
        self._tell = tell
        # By symbol.
        self._features: dict[str, Features] = {}

    def fitted(self, population: Population) -> FittedModel | None:
        """The model of a population's times; None if that knows too few."""
        if len(population.tried) < ENOUGH_TIMED:
            return None
        for one in population.tried:
            if one.symbol not in self._features:
                (self._features[one.symbol],) = features_in([one.draft], population)
        timed = [self._features[one.symbol] for one in population.tried]
        times_ms = [one.time_ms for one in population.tried]
        if self._plug_in is None:
            return ScheduleModel(timed, times_ms)
        try:
            model = self._plug_in.make()
            model.fit(timed, times_ms)
        except (Exception, SystemExit) as error:  # it is somebody else's code
            self._give_up(error)
            return ScheduleModel(timed, times_ms)
        return PlugInModel(model, timed, times_ms, self._give_up)

    def _give_up(self, error: BaseException) -> None:
        if self._plug_in is not None:
            self._tell(f"{self._plug_in.title} failed, and {GAUSSIAN_PROCESS} replaces it in this run: {told(error)}")
        self._plug_in = None


def features_in(drafts: Sequence[Draft], population: Population) -> list[Features]:
    """Each schedule's features."""
    return [features_of(DraftStructure(draft, population.names)) for draft in drafts]
