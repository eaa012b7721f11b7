"""The result of one training."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from halide_autotune.autotune_loop.cost_model.ranking import RankingScores
from halide_autotune.weights.weights_file import Weights


class TrainingOutcome(StrEnum):
    """Whether the new weights are used, and if not, why."""

    ACCEPTED = "accepted"
    RANKS_WORSE = "ranks worse"
    TOO_FEW_SAMPLES = "too few samples"
    DIVERGED = "diverged"


# What a training is judged on if it can be.
HELD_OUT = "held-out"


@dataclass(frozen=True)
class TrainingReport:
    """One training, judged.

    Attributes:
        outcome: whether the new weights are used.
        reason: the outcome in one message, with the figures behind it.
        weights: the trained weights when accepted, else None.
        losses: the mean loss of a pipeline, one for each epoch; after a divergence those up to it.
        before, after: scores of the old and the new weights on the held-out schedules; on the training
            schedules when too few are held out to make a pair (`judged_on` says which). None when nothing
            was trained.
        judged_on: HELD_OUT or "training" schedules, or "" when nothing was trained.
        pipelines: how many pipelines had enough schedules to learn from.
        training_samples, held_out_samples: distinct schedules on either side.
        duration_s: wall time of the training with its judging.
    """

    outcome: TrainingOutcome
    reason: str
    weights: Weights | None
    losses: tuple[float, ...]
    before: RankingScores | None
    after: RankingScores | None
    judged_on: str
    pipelines: int
    training_samples: int
    held_out_samples: int
    duration_s: float

    @property
    def accepted(self) -> bool:
        """Whether the new weights are used."""
        return self.outcome is TrainingOutcome.ACCEPTED

    @property
    def held_out_accuracies(self) -> tuple[float | None, float | None]:
        """How the old and the new weights rank schedules that they have not seen; None where too few were held out."""
        if self.judged_on != HELD_OUT or self.before is None or self.after is None:
            return None, None
        return self.before.told_accuracy, self.after.told_accuracy


def report_fields(report: TrainingReport) -> dict[str, Any]:
    """The report as plain JSON values, without the weights themselves."""
    without_weights = asdict(replace(report, weights=None))
    del without_weights["weights"]
    return without_weights
