"""The objective of a run on several devices: how their times become one score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.checks import Unfit, above_zero, number, shown, table_of
from halide_autotune.targets.values.options import Option
from halide_autotune.targets.values.records import plain

# The test of a play-off is made after these turns: the fewest that can reach its confidence, then doubling.
LOOKS = (8, 16, 32, 64)
CONFIDENCE = 0.95
_PANEL = "Where it is timed"


def parse_device_weights(texts: Iterable[str]) -> dict[str, float]:
    """Parse items NAME=NUMBER into device → weight.

    Raises:
        UsageError: an item is malformed, or names a device twice.
    """
    weights: dict[str, float] = {}
    for text in texts:
        device, separator, digits = text.rpartition("=")
        try:
            weight = float(digits)
        except ValueError:
            weight = 0.0
        if not separator or not device or not 0 < weight < math.inf:
            raise UsageError(f"--device-weight {text!r} is not of the form NAME=NUMBER, such as pi5=2.")
        if device in weights:
            raise UsageError(f"--device-weight names {device} twice.")
        weights[device] = weight
    return weights


def _share_below_one(value: object) -> float:
    share = number(0)(value)
    if share >= 1:
        raise Unfit("a share from 0 to below 1", shown(value))
    return share


class ObjectiveKind(Enum):
    """How the devices' ratios are combined."""

    MEAN = "mean"
    WORST = "worst"
    WEIGHTED = "weighted"


@dataclass(frozen=True)
class Objective:
    """One number for times on several devices; lower is better.

    Attributes:
        kind: the geometric mean, the worst device, or the weighted geometric mean.
        device_weights: device → weight above zero, for the weighted mean; a device that is not named weighs 1.
        worst_tolerance: with WORST, how much slower than the baseline a schedule may be on any device, as a share.
    """

    kind: Annotated[
        ObjectiveKind,
        Option(
            "--objective",
            metavar="NAME",
            help="With several devices, how their times are combined: mean (the geometric mean), worst (faster in the"
            " mean, and on no device slower by more than --worst-tolerance) or weighted. Default: mean, or weighted"
            " with --device-weight.",
            panel=_PANEL,
            name="objective",
        ),
    ] = ObjectiveKind.MEAN
    device_weights: Annotated[
        Mapping[str, float],
        table_of(above_zero()),
        Option(
            "--device-weight",
            metavar="NAME=NUMBER",
            help="Weight of a device, 1 by default. Repeat it for more devices.",
            panel=_PANEL,
            parse=parse_device_weights,
        ),
    ] = field(default_factory=dict)
    worst_tolerance: Annotated[
        float,
        _share_below_one,
        Option(
            "--worst-tolerance",
            metavar="SHARE",
            help="With --objective worst: how much slower than the default or the incumbent the winner may be on any"
            " device.",
            panel=_PANEL,
        ),
    ] = 0.02

    def score(self, ratios: Mapping[str, float]) -> float:
        """The score of device → time as a share of the default's there."""
        if self.kind is ObjectiveKind.WORST:
            return max(ratios.values())
        return math.exp(self.mean_log({device: math.log(ratio) for device, ratio in ratios.items()}))

    def mean_log(self, logs: Mapping[str, float]) -> float:
        """The mean of device → logarithm of a ratio, weighted with WEIGHTED."""
        weights = {device: self._weight(device) for device in logs}
        return sum(weights[device] * value for device, value in logs.items()) / sum(weights.values())

    def _weight(self, device: str) -> float:
        return self.device_weights.get(device, 1.0) if self.kind is ObjectiveKind.WEIGHTED else 1.0

    def describe(self) -> str:
        """For people and for run.toml."""
        if self.kind is ObjectiveKind.WORST:
            return f"worst, at most {self.worst_tolerance:.1%} slower on any device"
        if self.kind is ObjectiveKind.WEIGHTED:
            weights = ", ".join(f"{device}={weight:g}" for device, weight in sorted(self.device_weights.items()))
            return f"weighted, {weights}" if weights else "weighted, all 1"
        return str(self.kind.value)


def complete_objective(values: Mapping[str, object]) -> dict[str, object]:
    """Return the given options, with the objective that device weights imply.

    Raises:
        UsageError: device weights are given with another objective.
    """
    kind = plain(values.get("objective"))
    if not values.get("device_weights"):
        return dict(values)
    if kind not in (None, ObjectiveKind.WEIGHTED.value):
        raise UsageError(f"--device-weight requires --objective weighted, not {kind}.")
    return {**values, "objective": ObjectiveKind.WEIGHTED}


def check_weighted_devices(objective: Objective, names: Sequence[str]) -> None:
    """Check that the run times on every device with a weight.

    Raises:
        UsageError: it does not.
    """
    for device in objective.device_weights:
        if device not in names:
            raise UsageError(
                f"--device-weight names {device}, which is not a device of this run.",
                next_step=f"Its devices are: {', '.join(names)}.",
            )
