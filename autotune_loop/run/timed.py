"""A schedule that may win, with its time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.store.published import DEFAULT


@dataclass(frozen=True)
class Timed:
    """A measured candidate, the reference or its rival.

    Attributes:
        sample: its folder below samples/.
        median_ms, spread_ms: on the run's scale.
        processes: how many processes the time is the mean of.
        log_error: standard error of the logarithm of its ratio to the yardstick; 0 without one.
        parameters: values of the tuned parameters; empty where none are tuned.
        by_size_ms: size → what it took there; empty if there is one size.
        is_timed_anew: it was timed anew once it was found to be the best, and this is what that gave.
    """

    symbol: str
    sample: str
    origin: str
    median_ms: float
    spread_ms: float
    is_default: bool
    device: str
    processes: int = 1
    log_error: float = 0.0
    parameters: Mapping[str, str] = field(default_factory=dict)
    by_size_ms: Mapping[str, float] = field(default_factory=dict)
    is_timed_anew: bool = False

    @property
    def cautious_ms(self) -> float:
        """Its time if it was lucky: what schedules are ordered by, because the fastest of many single timings was."""
        return self.median_ms * math.exp(self.log_error)

    @property
    def is_in_use(self) -> bool:
        """Whether it is what is in use today, made as data like other candidates."""
        return self.origin in (Origin.OWN_SCHEDULE.value, Origin.INCUMBENT.value)

    @property
    def name(self) -> str:
        """What a result calls it."""
        return DEFAULT if self.is_default else self.sample

    def cautious_ms_at(self, size: str) -> float:
        """The same at one of its sizes."""
        return self.by_size_around(self.cautious_ms)[size]

    def by_size_around(self, median_ms: float) -> dict[str, float]:
        """Size → its time there, where its time over the sizes is settled; the geometric mean of them is that time."""
        if not self.by_size_ms:
            return {}
        factor = median_ms / statistics.geometric_mean(self.by_size_ms.values())
        return {size: time_ms * factor for size, time_ms in self.by_size_ms.items()}


def fastest_at(size: str, timed: Iterable[Timed]) -> list[Timed]:
    """Those that were timed at a size, the fastest there first."""
    return sorted((one for one in timed if size in one.by_size_ms), key=lambda one: one.cautious_ms_at(size))


def fastest_at_sizes(timed: Sequence[Timed], count: int) -> set[str]:
    """The symbols of the `count` fastest at each size; empty if there is one size."""
    sizes = {size for one in timed for size in one.by_size_ms}
    return {one.symbol for size in sizes for one in fastest_at(size, timed)[:count]}
