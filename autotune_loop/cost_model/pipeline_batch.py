"""The schedules of one pipeline, ready for training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PipelineBatch:
    """The distinct schedules of one pipeline; n of them, each with the same number of stages.

    Attributes:
        pipeline_id: names the pipeline.
        schedule_sha256s: n hashes of the schedule features, ascending.
        logs: (n, stages, 40 or 74) log(schedule features + 1), and a column of ones.
        terms: (n, stages, 32) the amounts of work, see `cost_terms`.
        pipeline_inputs: (stages, 280).
        runtimes_ms: (n,) the fastest runtime of each.
    """

    pipeline_id: int
    schedule_sha256s: tuple[str, ...]
    logs: FloatArray
    terms: FloatArray
    pipeline_inputs: FloatArray
    runtimes_ms: FloatArray

    def __len__(self) -> int:
        return len(self.runtimes_ms)
