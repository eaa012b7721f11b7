"""A sample left out of training."""

from __future__ import annotations

from dataclasses import dataclass

from autotune_loop.cost_model.process.training_sample import TrainingSample


@dataclass(frozen=True)
class RejectedSample:
    """A sample that cannot be learnt from, and why."""

    sample: TrainingSample
    reason: str
