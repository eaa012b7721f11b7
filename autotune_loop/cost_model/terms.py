"""The hand-written terms of Halide's cost models: the amount of each of 32 kinds of work.

A network predicts a price r_k for each kind; a stage costs 1e-9 * sum of B_k * r_k milliseconds. The amounts B depend
on the schedule features and the number of cores only, so they are computed once for each sample. Adams2019's are about
CPUs with vectors and caches, Anderson2021's about GPUs with blocks of threads and three memories.

Source: Halide, `src/autoschedulers/*/cost_model_generator.cpp`; feature order: `Featurization.h`.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from halide_autotune.weights.network import Network

FloatArray = npt.NDArray[np.float32]

TERM_COUNT = 32
_MS_PER_UNIT = np.float32(1e-9)
_PAGE_BYTES = np.float32(4096)


def _num_tasks(inner_parallelism: FloatArray, outer_parallelism: FloatArray) -> FloatArray:
    """Parallel tasks of each stage, at least 1."""
    tasks: FloatArray = np.maximum(1, inner_parallelism * outer_parallelism)
    return tasks


def _idle_core_wastage(tasks: FloatArray, num_cores: int) -> FloatArray:
    """How much more computing costs because cores are idle at the end: 1 where none is."""
    tasks_per_core = tasks / np.float32(num_cores)
    wastage: FloatArray = np.ceil(tasks_per_core) / np.maximum(1, tasks_per_core)
    return wastage


def cost_terms(schedule_features: FloatArray, num_cores: int, network: Network) -> FloatArray:
    """The amount of each of the 32 kinds of work.

    Args:
        schedule_features: (..., stages, 39 or 73) float32, the output as stage 0.
        num_cores: cores of the device (of a GPU, its streaming multiprocessors); Halide takes the autoscheduler's
            `parallelism`.
        network: whose features these are.

    Returns:
        (..., stages, 32) float32, already times 1e-9: a dot product with the prices gives milliseconds.
    """
    features = np.moveaxis(schedule_features, -1, 0).astype(np.float32, copy=False)
    terms = np.zeros((TERM_COUNT, *features.shape[1:]), dtype=np.float32)
    _FILL_TERMS[network](features, terms, num_cores)
    terms *= _MS_PER_UNIT
    by_stage: FloatArray = np.ascontiguousarray(np.moveaxis(terms, 0, -1))
    return by_stage


# Position of each schedule feature, in the order of Halide's struct ScheduleFeatures.
_Adams2019 = IntEnum(
    "_Adams2019",
    "NUM_REALIZATIONS NUM_PRODUCTIONS POINTS_COMPUTED_PER_REALIZATION POINTS_COMPUTED_PER_PRODUCTION "
    "POINTS_COMPUTED_TOTAL POINTS_COMPUTED_MINIMUM INNERMOST_LOOP_EXTENT INNERMOST_PURE_LOOP_EXTENT "
    "UNROLLED_LOOP_EXTENT INNER_PARALLELISM OUTER_PARALLELISM BYTES_AT_REALIZATION BYTES_AT_PRODUCTION BYTES_AT_ROOT "
    "INNERMOST_BYTES_AT_REALIZATION INNERMOST_BYTES_AT_PRODUCTION INNERMOST_BYTES_AT_ROOT INLINED_CALLS "
    "UNIQUE_BYTES_READ_PER_REALIZATION UNIQUE_LINES_READ_PER_REALIZATION ALLOCATION_BYTES_READ_PER_REALIZATION "
    "WORKING_SET VECTOR_SIZE NATIVE_VECTOR_SIZE NUM_VECTORS NUM_SCALARS SCALAR_LOADS_PER_VECTOR "
    "VECTOR_LOADS_PER_VECTOR SCALAR_LOADS_PER_SCALAR BYTES_AT_TASK INNERMOST_BYTES_AT_TASK "
    "UNIQUE_BYTES_READ_PER_VECTOR UNIQUE_LINES_READ_PER_VECTOR UNIQUE_BYTES_READ_PER_TASK UNIQUE_LINES_READ_PER_TASK "
    "WORKING_SET_AT_TASK WORKING_SET_AT_PRODUCTION WORKING_SET_AT_REALIZATION WORKING_SET_AT_ROOT",
    start=0,
)


def _fill_adams2019(f: FloatArray, terms: FloatArray, num_cores: int) -> None:
    """Fill in B_0 to B_31.

    Args:
        f: (39, ..., stages) features, the output as stage 0.
        terms: (32, ..., stages) zeros.
        num_cores: cores of the machine.
    """
    tasks = _num_tasks(f[_Adams2019.INNER_PARALLELISM], f[_Adams2019.OUTER_PARALLELISM])
    _adams2019_compute(f, terms, _idle_core_wastage(tasks, num_cores))
    _adams2019_loads(f, terms, tasks)
    _adams2019_stores(f, terms)
    parallel = f[_Adams2019.INNER_PARALLELISM] > 1
    terms[24] = f[_Adams2019.NUM_REALIZATIONS]
    terms[25] = np.where(parallel, f[_Adams2019.NUM_PRODUCTIONS], 0)
    terms[26] = f[_Adams2019.NUM_PRODUCTIONS] * (f[_Adams2019.INNER_PARALLELISM] - 1)
    terms[27] = f[_Adams2019.WORKING_SET]


def _adams2019_compute(f: FloatArray, terms: FloatArray, wastage: FloatArray) -> None:
    """Terms 0-3: values computed, more expensive where cores are idle at the end."""
    vector_work = f[_Adams2019.VECTOR_SIZE] * f[_Adams2019.NUM_VECTORS] * wastage
    scalar_work = f[_Adams2019.NUM_SCALARS] * wastage
    inlined = f[_Adams2019.INLINED_CALLS] != 0
    terms[0] = np.where(inlined, 0, vector_work)
    terms[1] = np.where(inlined, 0, scalar_work)
    terms[2] = np.where(inlined, vector_work, 0)
    terms[3] = np.where(inlined, scalar_work, 0)


def _adams2019_loads(f: FloatArray, terms: FloatArray, tasks: FloatArray) -> None:
    """Terms 5-15: what is read, per realization, per vector or scalar, and per task."""
    realizations = f[_Adams2019.NUM_REALIZATIONS]
    vectors, scalars = f[_Adams2019.NUM_VECTORS], f[_Adams2019.NUM_SCALARS]
    terms[5] = realizations * f[_Adams2019.UNIQUE_LINES_READ_PER_REALIZATION]
    terms[6] = realizations * f[_Adams2019.UNIQUE_BYTES_READ_PER_REALIZATION]
    terms[7] = vectors * f[_Adams2019.SCALAR_LOADS_PER_VECTOR]
    terms[8] = scalars * f[_Adams2019.SCALAR_LOADS_PER_SCALAR]
    terms[9] = vectors * f[_Adams2019.VECTOR_LOADS_PER_VECTOR]
    terms[10] = scalars * f[_Adams2019.UNIQUE_BYTES_READ_PER_VECTOR]
    terms[11] = vectors * f[_Adams2019.UNIQUE_BYTES_READ_PER_VECTOR]
    terms[12] = scalars * f[_Adams2019.UNIQUE_LINES_READ_PER_VECTOR]
    terms[13] = vectors * f[_Adams2019.UNIQUE_LINES_READ_PER_VECTOR]
    terms[14] = tasks * f[_Adams2019.UNIQUE_BYTES_READ_PER_TASK]
    terms[15] = tasks * f[_Adams2019.UNIQUE_LINES_READ_PER_TASK]


def _adams2019_stores(f: FloatArray, terms: FloatArray) -> None:
    """Terms 16-23: what is written. All doubled, as the weights that Halide ships were trained with."""
    realizations, parallelism = f[_Adams2019.NUM_REALIZATIONS], f[_Adams2019.INNER_PARALLELISM]
    innermost_bytes = np.maximum(1, f[_Adams2019.INNERMOST_BYTES_AT_TASK])
    lines = 2 * realizations * (parallelism * (f[_Adams2019.BYTES_AT_TASK] / innermost_bytes))
    stored_bytes = 2 * realizations * f[_Adams2019.BYTES_AT_REALIZATION]
    parallel = parallelism > 1
    is_output = np.zeros(f.shape[1:], dtype=np.bool_)
    is_output[..., 0] = True
    for offset, where in enumerate((parallel, ~parallel & is_output, ~parallel & ~is_output)):
        terms[16 + offset] = np.where(where, lines, 0)
        terms[19 + offset] = np.where(where, stored_bytes, 0)
    stores = f[_Adams2019.NUM_VECTORS] + f[_Adams2019.NUM_SCALARS]
    terms[22] = np.where(parallel, 2 * stores / innermost_bytes, 0)
    # Threads that may fault on one page at once, each fault served one after the other.
    faulting_threads = np.minimum(parallelism, _PAGE_BYTES / innermost_bytes)
    terms[23] = 2 * f[_Adams2019.BYTES_AT_PRODUCTION] * faulting_threads * parallelism * f[_Adams2019.OUTER_PARALLELISM]


# The plug-in writes shares above zero; a file from elsewhere must not divide by it.
_SMALLEST_SHARE = np.float32(1e-6)


# Position of each schedule feature, in the order of Halide's struct ScheduleFeatures.
_Anderson2021 = IntEnum(
    "_Anderson2021",
    "NUM_REALIZATIONS NUM_PRODUCTIONS POINTS_COMPUTED_PER_REALIZATION POINTS_COMPUTED_PER_PRODUCTION "
    "POINTS_COMPUTED_PER_THREAD POINTS_COMPUTED_TOTAL POINTS_COMPUTED_MINIMUM INNERMOST_LOOP_EXTENT "
    "INNERMOST_PURE_LOOP_EXTENT UNROLLED_LOOP_EXTENT INNER_PARALLELISM OUTER_PARALLELISM BYTES_AT_REALIZATION "
    "BYTES_AT_PRODUCTION BYTES_AT_ROOT INNERMOST_BYTES_AT_REALIZATION INNERMOST_BYTES_AT_PRODUCTION "
    "INNERMOST_BYTES_AT_ROOT INLINED_CALLS UNIQUE_GLOBAL_BYTES_READ_PER_REALIZATION "
    "UNIQUE_SHARED_BYTES_READ_PER_REALIZATION UNIQUE_REGISTER_BYTES_READ_PER_REALIZATION "
    "UNIQUE_GLOBAL_LINES_READ_PER_REALIZATION UNIQUE_SHARED_LINES_READ_PER_REALIZATION "
    "UNIQUE_REGISTER_LINES_READ_PER_REALIZATION UNIQUE_GLOBAL_BYTES_READ_PER_THREAD "
    "UNIQUE_SHARED_BYTES_READ_PER_THREAD UNIQUE_REGISTER_BYTES_READ_PER_THREAD UNIQUE_GLOBAL_LINES_READ_PER_THREAD "
    "UNIQUE_SHARED_LINES_READ_PER_THREAD UNIQUE_REGISTER_LINES_READ_PER_THREAD "
    "GLOBAL_ALLOCATION_BYTES_READ_PER_REALIZATION SHARED_ALLOCATION_BYTES_READ_PER_REALIZATION "
    "REGISTER_ALLOCATION_BYTES_READ_PER_REALIZATION WORKING_SET NUM_SCALARS GLOBAL_BYTES_AT_TASK SHARED_BYTES_AT_TASK "
    "REGISTER_BYTES_AT_TASK GLOBAL_INNERMOST_BYTES_AT_TASK SHARED_INNERMOST_BYTES_AT_TASK "
    "REGISTER_INNERMOST_BYTES_AT_TASK UNIQUE_BYTES_READ_PER_POINT UNIQUE_LINES_READ_PER_POINT "
    "UNIQUE_BYTES_READ_PER_TASK UNIQUE_LINES_READ_PER_TASK WORKING_SET_AT_TASK WORKING_SET_AT_PRODUCTION "
    "WORKING_SET_AT_REALIZATION WORKING_SET_AT_ROOT NUM_BLOCKS NUM_WARPS_PER_BLOCK BLOCK_OCCUPANCY "
    "WARP_LANE_UTILIZATION NUM_ACTIVE_WARPS_PER_BLOCK WARP_LANE_UTILIZATION_AT_BLOCK_Y "
    "WARP_LANE_UTILIZATION_AT_BLOCK_Z IDLE_LANE_WASTAGE NUM_SHARED_MEM_LOADS_PER_BLOCK NUM_GLOBAL_MEM_LOADS_PER_BLOCK "
    "NUM_SHARED_MEM_STORES_PER_BLOCK NUM_GLOBAL_MEM_STORES_PER_BLOCK SHARED_MEM_STORE_EFFICIENCY "
    "SHARED_MEM_LOAD_EFFICIENCY GLOBAL_MEM_STORE_EFFICIENCY GLOBAL_MEM_LOAD_EFFICIENCY WORKING_SET_AT_THREAD "
    "SHARED_MEM_OCCUPANCY SHARED_MEM_BLOCK_LIMIT_FACTOR MAX_WARP_OCCUPANCY MAX_BLOCK_OCCUPANCY NUM_THREADS_PER_BLOCK "
    "EXPR_BRANCHING",
    start=0,
)


def _fill_anderson2021(f: FloatArray, terms: FloatArray, num_cores: int) -> None:
    """Fill in B_0 to B_31; 23 (dead in Halide), 30 and 31 stay zero.

    Args:
        f: (73, ..., stages) features, the output as stage 0.
        terms: (32, ..., stages) zeros.
        num_cores: streaming multiprocessors of the GPU.
    """
    tasks = _num_tasks(f[_Anderson2021.INNER_PARALLELISM], f[_Anderson2021.OUTER_PARALLELISM])
    blocks = np.maximum(1, f[_Anderson2021.NUM_BLOCKS])
    threads = blocks * f[_Anderson2021.NUM_THREADS_PER_BLOCK]
    parallel = f[_Anderson2021.INNER_PARALLELISM] > 1
    _anderson2021_compute(f, terms, threads, _idle_core_wastage(tasks, num_cores))
    _anderson2021_loads(f, terms, threads, tasks)
    _anderson2021_blocks(f, terms, blocks)
    false_sharing = f[_Anderson2021.NUM_SCALARS] / np.maximum(1, f[_Anderson2021.GLOBAL_INNERMOST_BYTES_AT_TASK])
    terms[22] = np.where(parallel, false_sharing, 0)
    terms[24] = f[_Anderson2021.NUM_REALIZATIONS]
    terms[25] = np.where(parallel, f[_Anderson2021.NUM_PRODUCTIONS], 0)
    terms[26] = f[_Anderson2021.NUM_PRODUCTIONS] * (f[_Anderson2021.INNER_PARALLELISM] - 1)
    terms[9] = f[_Anderson2021.WORKING_SET]


def _anderson2021_compute(f: FloatArray, terms: FloatArray, threads: FloatArray, wastage: FloatArray) -> None:
    """Terms 1, 3, 4, 19: values computed, more expensive where multiprocessors or lanes of a warp are idle."""
    inlined = f[_Anderson2021.INLINED_CALLS] != 0
    busy_lanes = np.maximum(_SMALLEST_SHARE, 1 - f[_Anderson2021.IDLE_LANE_WASTAGE])
    scalar_work = f[_Anderson2021.NUM_SCALARS] * wastage
    thread_work = threads * f[_Anderson2021.POINTS_COMPUTED_PER_THREAD] * wastage
    terms[1] = np.where(inlined, 0, scalar_work / busy_lanes)
    terms[3] = np.where(inlined, scalar_work, 0)
    terms[4] = np.where(inlined, thread_work, 0)
    terms[19] = np.where(inlined, 0, thread_work / busy_lanes)


def _anderson2021_loads(f: FloatArray, terms: FloatArray, threads: FloatArray, tasks: FloatArray) -> None:
    """Terms of what is read: per realization and per thread from each memory, per point, and per task."""
    realizations, scalars = f[_Anderson2021.NUM_REALIZATIONS], f[_Anderson2021.NUM_SCALARS]
    terms[5] = realizations * f[_Anderson2021.UNIQUE_GLOBAL_LINES_READ_PER_REALIZATION]
    terms[16] = realizations * f[_Anderson2021.UNIQUE_SHARED_LINES_READ_PER_REALIZATION]
    terms[8] = realizations * f[_Anderson2021.UNIQUE_REGISTER_LINES_READ_PER_REALIZATION]
    terms[6] = realizations * f[_Anderson2021.UNIQUE_GLOBAL_BYTES_READ_PER_REALIZATION]
    terms[20] = realizations * f[_Anderson2021.UNIQUE_SHARED_BYTES_READ_PER_REALIZATION]
    terms[7] = realizations * f[_Anderson2021.UNIQUE_REGISTER_BYTES_READ_PER_REALIZATION]
    terms[18] = threads * f[_Anderson2021.UNIQUE_GLOBAL_LINES_READ_PER_THREAD]
    terms[17] = threads * f[_Anderson2021.UNIQUE_SHARED_LINES_READ_PER_THREAD]
    terms[2] = threads * f[_Anderson2021.UNIQUE_REGISTER_LINES_READ_PER_THREAD]
    terms[13] = threads * f[_Anderson2021.UNIQUE_GLOBAL_BYTES_READ_PER_THREAD]
    terms[11] = threads * f[_Anderson2021.UNIQUE_SHARED_BYTES_READ_PER_THREAD]
    terms[0] = threads * f[_Anderson2021.UNIQUE_REGISTER_BYTES_READ_PER_THREAD]
    terms[10] = scalars * f[_Anderson2021.UNIQUE_BYTES_READ_PER_POINT]
    terms[12] = scalars * f[_Anderson2021.UNIQUE_LINES_READ_PER_POINT]
    terms[14] = tasks * f[_Anderson2021.UNIQUE_BYTES_READ_PER_TASK]
    terms[15] = tasks * f[_Anderson2021.UNIQUE_LINES_READ_PER_TASK]


def _anderson2021_blocks(f: FloatArray, terms: FloatArray, blocks: FloatArray) -> None:
    """Terms 21, 27-29: memory transactions of all blocks, more expensive where accesses do not coalesce."""
    inlined = f[_Anderson2021.INLINED_CALLS] != 0
    load_share = np.maximum(_SMALLEST_SHARE, f[_Anderson2021.GLOBAL_MEM_LOAD_EFFICIENCY])
    store_share = np.maximum(_SMALLEST_SHARE, f[_Anderson2021.GLOBAL_MEM_STORE_EFFICIENCY])
    terms[28] = blocks * f[_Anderson2021.NUM_GLOBAL_MEM_LOADS_PER_BLOCK] / np.where(inlined, 1, load_share)
    terms[27] = blocks * f[_Anderson2021.NUM_SHARED_MEM_LOADS_PER_BLOCK]
    terms[29] = blocks * f[_Anderson2021.NUM_SHARED_MEM_STORES_PER_BLOCK]
    terms[21] = blocks * f[_Anderson2021.NUM_GLOBAL_MEM_STORES_PER_BLOCK] / np.where(inlined, 1, store_share)


_FILL_TERMS = {Network.ADAMS2019: _fill_adams2019, Network.ANDERSON2021: _fill_anderson2021}
