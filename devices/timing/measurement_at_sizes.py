"""The time of one schedule over several sizes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields

from halide_autotune.devices.timing.machine_signs import together
from halide_autotune.devices.timing.measurement import Measurement


@dataclass(frozen=True)
class MeasurementAtSizes(Measurement):
    """Its times are geometric means over the sizes; the repetitions are those of the first size.

    Attributes:
        at_sizes: size → the measurement there; at least two, the main size first.
    """

    at_sizes: Mapping[str, Measurement] = field(default_factory=dict)

    @property
    def median_s(self) -> float:
        """Geometric mean of the sizes' medians."""
        return self._mean(lambda one: one.median_s)

    @property
    def minimum_s(self) -> float:
        """Geometric mean of the sizes' fastest repetitions."""
        return self._mean(lambda one: one.minimum_s)

    @property
    def quarter_s(self) -> float:
        """Geometric mean of the sizes' lower quartiles."""
        return self._mean(lambda one: one.quarter_s)

    @property
    def spread_s(self) -> float:
        """The standard deviation of the geometric mean."""
        shares = [one.spread_s / one.median_s for one in self.at_sizes.values()]
        return self.median_s * math.hypot(*shares) / len(shares)

    @property
    def is_disturbed(self) -> bool:
        """Whether every repetition at one of the sizes was disturbed."""
        return any(one.is_disturbed for one in self.at_sizes.values())

    @property
    def ratio(self) -> float | None:
        """Geometric mean of the sizes' ratios; None if it was timed alone at any of them."""
        ratios = [one.ratio for one in self.at_sizes.values()]
        known = [ratio for ratio in ratios if ratio is not None]
        return statistics.geometric_mean(known) if len(known) == len(ratios) else None

    @property
    def beside_median_s(self) -> float | None:
        """Geometric mean of the sizes' medians of the kernel beside it; None if it was timed alone at any of them."""
        medians = [one.beside_median_s for one in self.at_sizes.values()]
        known = [median_s for median_s in medians if median_s is not None]
        return statistics.geometric_mean(known) if len(known) == len(medians) else None

    def _mean(self, value: Callable[[Measurement], float]) -> float:
        return statistics.geometric_mean(map(value, self.at_sizes.values()))


def over_sizes(at_sizes: Mapping[str, Measurement]) -> Measurement:
    """The measurement of a schedule that was timed at these sizes; at one size that measurement itself."""
    main, *others = at_sizes.values()
    if not others:
        return main
    every = (main, *others)
    signs = [one.machine for one in every if one.machine is not None]
    values = {item.name: getattr(main, item.name) for item in fields(Measurement)} | {
        "output_checked": all(one.output_checked for one in every),
        "canary_s": _joined(one.canary_s for one in every),
        "reshaped": _joined(one.reshaped for one in every),
        "machine": together(signs) if signs else None,
    }
    return MeasurementAtSizes(**values, at_sizes=dict(at_sizes))


def by_size(measurement: Measurement) -> dict[str, Measurement]:
    """What `over_sizes` makes the measurement of."""
    return dict(measurement.at_sizes) if isinstance(measurement, MeasurementAtSizes) else {"": measurement}


def medians_by_size_s(measurement: Measurement) -> dict[str, float]:
    """Size → the median there; empty if it was timed at one size."""
    return {size: one.median_s for size, one in by_size(measurement).items() if size}


def _joined(parts: Iterable[tuple[object, ...]]) -> tuple[object, ...]:
    return tuple(item for part in parts for item in part)
