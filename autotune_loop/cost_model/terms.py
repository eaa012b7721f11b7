"""The hand-written terms of Halide's cost models: what the networks have in common.

A network predicts a price r_k for each of 32 kinds of work; a stage costs 1e-9 * sum of B_k * r_k milliseconds.
The amounts B depend on the schedule features and the number of cores alone, so they are computed once for a sample.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

TERM_COUNT = 32


class ScheduleFeature(IntEnum):
    """Position of each schedule feature, in the order of Halide's struct ScheduleFeatures."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:
        return count


def num_tasks(inner_parallelism: FloatArray, outer_parallelism: FloatArray) -> FloatArray:
    """Parallel tasks of each stage, at least 1."""
    tasks: FloatArray = np.maximum(1, inner_parallelism * outer_parallelism)
    return tasks


def idle_core_wastage(tasks: FloatArray, num_cores: int) -> FloatArray:
    """How much more computing costs because cores are idle at the end: 1 where none is."""
    tasks_per_core = tasks / np.float32(num_cores)
    wastage: FloatArray = np.ceil(tasks_per_core) / np.maximum(1, tasks_per_core)
    return wastage
