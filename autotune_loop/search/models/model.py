"""Models that say which of many proposed schedules to time: the one that is always there, and those of packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from halide_autotune.autotune_loop.search.models.schedule_model import Features
from halide_autotune.targets.extension_point import ExtensionPoint

GAUSSIAN_PROCESS = "gaussian_process"
# The same, and another one of the loop nests that the most promising schedules are lowered to: a Gaussian process too,
# boosted trees or networks that walk the loops, both of which learn which is faster, or the times.
LOWERED, TREES, TREES_OF_TIMES = "lowered", "trees", "trees_of_times"
TREE_GRU, TREE_GRU_OF_TIMES = "tree_gru", "tree_gru_of_times"
# The first Gaussian process, and these of loop nests, together.
ENSEMBLE, ENSEMBLE_OF_NESTS = "ensemble", (LOWERED, TREE_GRU)
OF_NESTS = (LOWERED, TREES, TREES_OF_TIMES, TREE_GRU, TREE_GRU_OF_TIMES, ENSEMBLE)
# An entry point leads to a class or function without arguments that makes a `ScheduleCostModel`.
MODELS = ExtensionPoint(
    group="halide_autotune.models",
    noun="model",
    protocol="sdk.ScheduleCostModel",
    methods=("fit", "predict"),
    built_in=(*OF_NESTS, GAUSSIAN_PROCESS),
    remedy="leave out --model",
)


class ScheduleCostModel(Protocol):
    """Predicts the times of one pipeline's schedules. A new one is made whenever there are new times to learn from.

    A schedule is given by its features: each Func's identifier with a row of numbers, whose meanings are
    `sdk.FEATURE_NAMES`. Schedules need not have the same Funcs, since some have wrappers.

    A package gives its own by an entry point of the group `halide_autotune.models`.
    """

    def fit(self, timed: Sequence[Features], times_ms: Sequence[float]) -> None:
        """Learn from all schedules of the pipeline whose times are known; at least fifteen.

        Args:
            times_ms: of each, in milliseconds, on the run's scale.
        """

    def predict(self, schedules: Sequence[Features]) -> tuple[Sequence[float], Sequence[float]]:
        """Return the expected natural logarithm of each schedule's time in milliseconds, and its standard deviation."""


@dataclass(frozen=True)
class PlugInModels:
    """What makes a package's models.

    Attributes:
        title: what messages call it.
    """

    title: str
    make: Callable[[], ScheduleCostModel]


def load_model(name: str) -> PlugInModels | None:
    """The models of a name; None for a built-in one.

    Raises:
        UsageError: there is no model of that name, or a package's cannot be imported or made.
    """
    MODELS.refuse_taken([name])
    if name in MODELS.built_in:
        return None
    factory = MODELS.load(name)
    MODELS.checked(name, factory)
    return PlugInModels(MODELS.title(name), lambda: MODELS.checked(name, factory))
