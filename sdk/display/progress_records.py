"""The pieces of a run's progress."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StageProgress:
    """How far a stage of one batch is; `wanted` is 0 until it is known."""

    round_index: int
    task_index: int
    done: int = 0
    wanted: int = 0
    note: str = ""


@dataclass(frozen=True)
class Standing:
    """The default and the best so far of one argument set, each as it was timed once."""

    default_ms: float | None = None
    best_ms: float | None = None
    best_sample: str = ""
    best_at_s: float | None = None

    @property
    def speed_up(self) -> float | None:
        """Default time over best time."""
        return None if self.default_ms is None or self.best_ms is None else self.default_ms / self.best_ms


@dataclass(frozen=True)
class BatchRecord:
    """A batch that is done.

    Attributes:
        rank_correlation: Spearman's, of predicted with measured times; None with too few samples.
        duration_s: since the batch before it was done, or since the run started.
    """

    round_index: int
    task_index: int
    measured: int
    failed: int
    best_ms: float | None
    median_ms: float | None
    rank_correlation: float | None
    duration_s: float


@dataclass(frozen=True)
class ShownNotice:
    """A notice with the time at which it came, in seconds since the start."""

    at_s: float
    text: str
    warning: bool
