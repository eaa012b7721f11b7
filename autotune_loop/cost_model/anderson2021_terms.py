"""The amounts of work that Anderson2021's cost model charges for: GPUs with blocks of threads and three memories.

Source: Halide, `src/autoschedulers/anderson2021/cost_model_generator.cpp`; feature order: `Featurization.h`.
"""

from __future__ import annotations

from enum import auto

import numpy as np

from autotune_loop.cost_model.terms import FloatArray, ScheduleFeature, idle_core_wastage, num_tasks

# The plug-in writes shares above zero; a file from elsewhere must not divide by it.
_SMALLEST_SHARE = np.float32(1e-6)


class _Feature(ScheduleFeature):
    NUM_REALIZATIONS = auto()
    NUM_PRODUCTIONS = auto()
    POINTS_COMPUTED_PER_REALIZATION = auto()
    POINTS_COMPUTED_PER_PRODUCTION = auto()
    POINTS_COMPUTED_PER_THREAD = auto()
    POINTS_COMPUTED_TOTAL = auto()
    POINTS_COMPUTED_MINIMUM = auto()
    INNERMOST_LOOP_EXTENT = auto()
    INNERMOST_PURE_LOOP_EXTENT = auto()
    UNROLLED_LOOP_EXTENT = auto()
    INNER_PARALLELISM = auto()
    OUTER_PARALLELISM = auto()
    BYTES_AT_REALIZATION = auto()
    BYTES_AT_PRODUCTION = auto()
    BYTES_AT_ROOT = auto()
    INNERMOST_BYTES_AT_REALIZATION = auto()
    INNERMOST_BYTES_AT_PRODUCTION = auto()
    INNERMOST_BYTES_AT_ROOT = auto()
    INLINED_CALLS = auto()
    UNIQUE_GLOBAL_BYTES_READ_PER_REALIZATION = auto()
    UNIQUE_SHARED_BYTES_READ_PER_REALIZATION = auto()
    UNIQUE_REGISTER_BYTES_READ_PER_REALIZATION = auto()
    UNIQUE_GLOBAL_LINES_READ_PER_REALIZATION = auto()
    UNIQUE_SHARED_LINES_READ_PER_REALIZATION = auto()
    UNIQUE_REGISTER_LINES_READ_PER_REALIZATION = auto()
    UNIQUE_GLOBAL_BYTES_READ_PER_THREAD = auto()
    UNIQUE_SHARED_BYTES_READ_PER_THREAD = auto()
    UNIQUE_REGISTER_BYTES_READ_PER_THREAD = auto()
    UNIQUE_GLOBAL_LINES_READ_PER_THREAD = auto()
    UNIQUE_SHARED_LINES_READ_PER_THREAD = auto()
    UNIQUE_REGISTER_LINES_READ_PER_THREAD = auto()
    GLOBAL_ALLOCATION_BYTES_READ_PER_REALIZATION = auto()
    SHARED_ALLOCATION_BYTES_READ_PER_REALIZATION = auto()
    REGISTER_ALLOCATION_BYTES_READ_PER_REALIZATION = auto()
    WORKING_SET = auto()
    NUM_SCALARS = auto()
    GLOBAL_BYTES_AT_TASK = auto()
    SHARED_BYTES_AT_TASK = auto()
    REGISTER_BYTES_AT_TASK = auto()
    GLOBAL_INNERMOST_BYTES_AT_TASK = auto()
    SHARED_INNERMOST_BYTES_AT_TASK = auto()
    REGISTER_INNERMOST_BYTES_AT_TASK = auto()
    UNIQUE_BYTES_READ_PER_POINT = auto()
    UNIQUE_LINES_READ_PER_POINT = auto()
    UNIQUE_BYTES_READ_PER_TASK = auto()
    UNIQUE_LINES_READ_PER_TASK = auto()
    WORKING_SET_AT_TASK = auto()
    WORKING_SET_AT_PRODUCTION = auto()
    WORKING_SET_AT_REALIZATION = auto()
    WORKING_SET_AT_ROOT = auto()
    NUM_BLOCKS = auto()
    NUM_WARPS_PER_BLOCK = auto()
    BLOCK_OCCUPANCY = auto()
    WARP_LANE_UTILIZATION = auto()
    NUM_ACTIVE_WARPS_PER_BLOCK = auto()
    WARP_LANE_UTILIZATION_AT_BLOCK_Y = auto()
    WARP_LANE_UTILIZATION_AT_BLOCK_Z = auto()
    IDLE_LANE_WASTAGE = auto()
    NUM_SHARED_MEM_LOADS_PER_BLOCK = auto()
    NUM_GLOBAL_MEM_LOADS_PER_BLOCK = auto()
    NUM_SHARED_MEM_STORES_PER_BLOCK = auto()
    NUM_GLOBAL_MEM_STORES_PER_BLOCK = auto()
    SHARED_MEM_STORE_EFFICIENCY = auto()
    SHARED_MEM_LOAD_EFFICIENCY = auto()
    GLOBAL_MEM_STORE_EFFICIENCY = auto()
    GLOBAL_MEM_LOAD_EFFICIENCY = auto()
    WORKING_SET_AT_THREAD = auto()
    SHARED_MEM_OCCUPANCY = auto()
    SHARED_MEM_BLOCK_LIMIT_FACTOR = auto()
    MAX_WARP_OCCUPANCY = auto()
    MAX_BLOCK_OCCUPANCY = auto()
    NUM_THREADS_PER_BLOCK = auto()
    EXPR_BRANCHING = auto()


def fill_anderson2021_terms(f: FloatArray, terms: FloatArray, num_cores: int) -> None:
    """Fill in B_0 to B_31; 23 (dead in Halide), 30 and 31 stay zero.

    Args:
        f: (73, ..., stages) features, the output as stage 0.
        terms: (32, ..., stages) zeros.
        num_cores: streaming multiprocessors of the GPU.
    """
    tasks = num_tasks(f[_Feature.INNER_PARALLELISM], f[_Feature.OUTER_PARALLELISM])
    blocks = np.maximum(1, f[_Feature.NUM_BLOCKS])
    threads = blocks * f[_Feature.NUM_THREADS_PER_BLOCK]
    parallel = f[_Feature.INNER_PARALLELISM] > 1
    _compute_terms(f, terms, threads, idle_core_wastage(tasks, num_cores))
    _load_terms(f, terms, threads, tasks)
    _block_terms(f, terms, blocks)
    false_sharing = f[_Feature.NUM_SCALARS] / np.maximum(1, f[_Feature.GLOBAL_INNERMOST_BYTES_AT_TASK])
    terms[22] = np.where(parallel, false_sharing, 0)
    terms[24] = f[_Feature.NUM_REALIZATIONS]
    terms[25] = np.where(parallel, f[_Feature.NUM_PRODUCTIONS], 0)
    terms[26] = f[_Feature.NUM_PRODUCTIONS] * (f[_Feature.INNER_PARALLELISM] - 1)
    terms[9] = f[_Feature.WORKING_SET]


def _compute_terms(f: FloatArray, terms: FloatArray, threads: FloatArray, wastage: FloatArray) -> None:
    """Terms 1, 3, 4, 19: values computed, dearer where multiprocessors or lanes of a warp are idle."""
    inlined = f[_Feature.INLINED_CALLS] != 0
    busy_lanes = np.maximum(_SMALLEST_SHARE, 1 - f[_Feature.IDLE_LANE_WASTAGE])
    scalar_work = f[_Feature.NUM_SCALARS] * wastage
    thread_work = threads * f[_Feature.POINTS_COMPUTED_PER_THREAD] * wastage
    terms[1] = np.where(inlined, 0, scalar_work / busy_lanes)
    terms[3] = np.where(inlined, scalar_work, 0)
    terms[4] = np.where(inlined, thread_work, 0)
    terms[19] = np.where(inlined, 0, thread_work / busy_lanes)


def _load_terms(f: FloatArray, terms: FloatArray, threads: FloatArray, tasks: FloatArray) -> None:
    """Terms of what is read: per realization and per thread from each memory, per point, and per task."""
    realizations, scalars = f[_Feature.NUM_REALIZATIONS], f[_Feature.NUM_SCALARS]
    terms[5] = realizations * f[_Feature.UNIQUE_GLOBAL_LINES_READ_PER_REALIZATION]
    terms[16] = realizations * f[_Feature.UNIQUE_SHARED_LINES_READ_PER_REALIZATION]
    terms[8] = realizations * f[_Feature.UNIQUE_REGISTER_LINES_READ_PER_REALIZATION]
    terms[6] = realizations * f[_Feature.UNIQUE_GLOBAL_BYTES_READ_PER_REALIZATION]
    terms[20] = realizations * f[_Feature.UNIQUE_SHARED_BYTES_READ_PER_REALIZATION]
    terms[7] = realizations * f[_Feature.UNIQUE_REGISTER_BYTES_READ_PER_REALIZATION]
    terms[18] = threads * f[_Feature.UNIQUE_GLOBAL_LINES_READ_PER_THREAD]
    terms[17] = threads * f[_Feature.UNIQUE_SHARED_LINES_READ_PER_THREAD]
    terms[2] = threads * f[_Feature.UNIQUE_REGISTER_LINES_READ_PER_THREAD]
    terms[13] = threads * f[_Feature.UNIQUE_GLOBAL_BYTES_READ_PER_THREAD]
    terms[11] = threads * f[_Feature.UNIQUE_SHARED_BYTES_READ_PER_THREAD]
    terms[0] = threads * f[_Feature.UNIQUE_REGISTER_BYTES_READ_PER_THREAD]
    terms[10] = scalars * f[_Feature.UNIQUE_BYTES_READ_PER_POINT]
    terms[12] = scalars * f[_Feature.UNIQUE_LINES_READ_PER_POINT]
    terms[14] = tasks * f[_Feature.UNIQUE_BYTES_READ_PER_TASK]
    terms[15] = tasks * f[_Feature.UNIQUE_LINES_READ_PER_TASK]


def _block_terms(f: FloatArray, terms: FloatArray, blocks: FloatArray) -> None:
    """Terms 21, 27-29: memory transactions of all blocks, dearer where accesses do not coalesce."""
    inlined = f[_Feature.INLINED_CALLS] != 0
    load_share = np.maximum(_SMALLEST_SHARE, f[_Feature.GLOBAL_MEM_LOAD_EFFICIENCY])
    store_share = np.maximum(_SMALLEST_SHARE, f[_Feature.GLOBAL_MEM_STORE_EFFICIENCY])
    terms[28] = blocks * f[_Feature.NUM_GLOBAL_MEM_LOADS_PER_BLOCK] / np.where(inlined, 1, load_share)
    terms[27] = blocks * f[_Feature.NUM_SHARED_MEM_LOADS_PER_BLOCK]
    terms[29] = blocks * f[_Feature.NUM_SHARED_MEM_STORES_PER_BLOCK]
    terms[21] = blocks * f[_Feature.NUM_GLOBAL_MEM_STORES_PER_BLOCK] / np.where(inlined, 1, store_share)
