"""How a training ended."""

from __future__ import annotations

from enum import StrEnum


class TrainingOutcome(StrEnum):
    """Whether to go on with the new weights, and if not, why."""

    ACCEPTED = "accepted"
    RANKS_WORSE = "ranks worse"
    TOO_FEW_SAMPLES = "too few samples"
    DIVERGED = "diverged"
