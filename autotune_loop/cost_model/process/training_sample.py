"""One measured schedule, named by its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TrainingSample:
    """A schedule to learn from.

    Attributes:
        featurization_path: its `.featurization` file; only needs to exist until it was added.
        runtime_ms: measured runtime in milliseconds.
        pipeline_id: schedules are compared within one id; None takes one made from the pipeline features.
            Give
            different ids to one pipeline at several sizes: its features do not tell them apart.
    """

    featurization_path: Path
    runtime_ms: float
    pipeline_id: int | None = None
