"""A batch on its way from search to executable."""

from __future__ import annotations

from dataclasses import dataclass, field

from autotune_loop.candidate import Candidate
from targets.build.executable import Executable


@dataclass(frozen=True)
class BuiltBatch:
    """A batch that is ready to be pushed.

    Attributes:
        candidates: those in the executable, the full beam search's first.
        executable: None when nothing could be built.
        exhausted: no new schedule was found at all.
        failed: candidates of the batch that were lost on the way.
        full_search_s: how long the full beam search took; None when there was none or it failed.
        stages_s: seconds by stage.
    """

    round_index: int
    task_index: int
    candidates: tuple[Candidate, ...]
    executable: Executable | None
    exhausted: bool
    failed: int
    full_search_s: float | None
    stages_s: dict[str, float]


@dataclass
class BatchInProgress:
    """What is known of the batch under construction; belongs to the thread that builds it."""

    round_index: int
    task_index: int
    failed: int = 0
    stages_s: dict[str, float] = field(default_factory=dict)
