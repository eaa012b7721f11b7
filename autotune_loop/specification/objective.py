"""What a schedule is to be good at, where a run has several devices."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

# Turns after which a play-off's test is made; the fewest that can show anything at its confidence, then doubling.
LOOKS = (8, 16, 32, 64)


class ObjectiveKind(Enum):
    """How the devices' ratios become one."""

    MEAN = "mean"
    WORST = "worst"
    WEIGHTED = "weighted"


@dataclass(frozen=True)
class Objective:
    """One number for times on several devices; lower is better.

    Attributes:
        kind: the geometric mean, the worst device, or the weighted geometric mean.
        device_weights: device → weight above zero, for the weighted mean; a device that is not named weighs 1.
        worst_tolerance: with WORST, how much slower than what it replaces a schedule may be on any device, as a share.
    """

    kind: ObjectiveKind = ObjectiveKind.MEAN
    device_weights: Mapping[str, float] = field(default_factory=dict)
    worst_tolerance: float = 0.02

    def score(self, ratios: Mapping[str, float]) -> float:
        """One figure for device → time as a share of the default's there."""
        if self.kind is ObjectiveKind.WORST:
            return max(ratios.values())
        return math.exp(self.mean_log({device: math.log(ratio) for device, ratio in ratios.items()}))

    def mean_log(self, logs: Mapping[str, float]) -> float:
        """The mean of device → logarithm of a ratio, weighted where that is wanted."""
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

    def to_json(self) -> str:
        """A text that `objective_from_json` reads."""
        return json.dumps([self.kind.value, dict(self.device_weights), self.worst_tolerance])


def objective_from_json(text: str) -> Objective:
    """The objective of `Objective.to_json`.

    Raises:
        ValueError: `text` is not one.
    """
    try:
        kind, weights, tolerance = json.loads(text)
        objective = Objective(ObjectiveKind(kind), {str(d): float(w) for d, w in weights.items()}, float(tolerance))
    except (TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"no objective: {error}") from error
    if not all(0 < weight < math.inf for weight in objective.device_weights.values()):
        raise ValueError("a weight that is not above zero")
    if not 0 <= objective.worst_tolerance < math.inf:
        raise ValueError("a tolerance below zero")
    return objective
