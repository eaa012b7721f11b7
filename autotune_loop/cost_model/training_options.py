"""The options of one training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from targets.errors import UsageError


class Loss(StrEnum):
    """What a training minimizes."""

    RELATIVE_THROUGHPUT = "relative_throughput"
    """Halide's: squared error of the throughput relative to the fastest schedule of the pipeline."""
    RANK = "rank"
    """AutoTVM's: the logistic loss of pairs on the logarithm of the predicted cost. It learns the order but not the
    scale: predictions are then no longer milliseconds."""


@dataclass(frozen=True)
class TrainingOptions:
    """Settings of one training.

    Attributes:
        num_cores: cores of the device that the runtimes were measured on (Halide's own tool always takes 32).
        epochs: passes over all pipelines; one optimizer step for each pipeline in each.
        learning_rate: Adam's step size. Halide's loop uses 1e-4, which from the baseline weights takes 1,000
            epochs to learn what 1e-3 learns in 300.
        loss: what to minimize.
        held_out_share: share of the schedules that only judge the result, 0 to 0.9. The hash of a schedule's
            features decides, so that it stays held out when samples are added.
        seed: chooses which schedules are held out, and which pairs the rank loss sees.

    Raises:
        UsageError: a value is out of its range.
    """

    num_cores: int
    epochs: int = 300
    learning_rate: float = 1e-3
    loss: Loss = Loss.RELATIVE_THROUGHPUT
    held_out_share: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        _require(self.num_cores >= 1, "num_cores", self.num_cores, "at least 1")
        _require(1 <= self.epochs <= 1_000_000, "epochs", self.epochs, "1 to 1,000,000")
        positive = math.isfinite(self.learning_rate) and self.learning_rate > 0
        _require(positive, "learning_rate", self.learning_rate, "a number above 0")
        _require(0 <= self.held_out_share <= 0.9, "held_out_share", self.held_out_share, "0 to 0.9")
        if self.loss not in list(Loss):
            raise UsageError(f"The loss {self.loss!r} is unknown; {' or '.join(Loss)} was expected.")


def _require(holds: bool, name: str, value: float, expected: str) -> None:
    if not holds:
        raise UsageError(f"The training option {name} is {value}, but {expected} was expected.")
