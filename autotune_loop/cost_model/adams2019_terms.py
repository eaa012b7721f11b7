"""The amounts of work that Adams2019's cost model charges for: CPUs with vectors and caches.

Source: Halide, `src/autoschedulers/adams2019/cost_model_generator.cpp`; feature order: `Featurization.h`.
"""

from __future__ import annotations

from enum import auto

import numpy as np

from autotune_loop.cost_model.terms import FloatArray, ScheduleFeature, idle_core_wastage, num_tasks

_PAGE_BYTES = np.float32(4096)


class _Feature(ScheduleFeature):
    NUM_REALIZATIONS = auto()
    NUM_PRODUCTIONS = auto()
    POINTS_COMPUTED_PER_REALIZATION = auto()
    POINTS_COMPUTED_PER_PRODUCTION = auto()
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
    UNIQUE_BYTES_READ_PER_REALIZATION = auto()
    UNIQUE_LINES_READ_PER_REALIZATION = auto()
    ALLOCATION_BYTES_READ_PER_REALIZATION = auto()
    WORKING_SET = auto()
    VECTOR_SIZE = auto()
    NATIVE_VECTOR_SIZE = auto()
    NUM_VECTORS = auto()
    NUM_SCALARS = auto()
    SCALAR_LOADS_PER_VECTOR = auto()
    VECTOR_LOADS_PER_VECTOR = auto()
    SCALAR_LOADS_PER_SCALAR = auto()
    BYTES_AT_TASK = auto()
    INNERMOST_BYTES_AT_TASK = auto()
    UNIQUE_BYTES_READ_PER_VECTOR = auto()
    UNIQUE_LINES_READ_PER_VECTOR = auto()
    UNIQUE_BYTES_READ_PER_TASK = auto()
    UNIQUE_LINES_READ_PER_TASK = auto()
    WORKING_SET_AT_TASK = auto()
    WORKING_SET_AT_PRODUCTION = auto()
    WORKING_SET_AT_REALIZATION = auto()
    WORKING_SET_AT_ROOT = auto()


def fill_adams2019_terms(f: FloatArray, terms: FloatArray, num_cores: int) -> None:
    """Fill in B_0 to B_31.

    Args:
        f: (39, ..., stages) features, the output as stage 0.
        terms: (32, ..., stages) zeros.
        num_cores: cores of the machine.
    """
    tasks = num_tasks(f[_Feature.INNER_PARALLELISM], f[_Feature.OUTER_PARALLELISM])
    _compute_terms(f, terms, idle_core_wastage(tasks, num_cores))
    _load_terms(f, terms, tasks)
    _store_terms(f, terms)
    parallel = f[_Feature.INNER_PARALLELISM] > 1
    terms[24] = f[_Feature.NUM_REALIZATIONS]
    terms[25] = np.where(parallel, f[_Feature.NUM_PRODUCTIONS], 0)
    terms[26] = f[_Feature.NUM_PRODUCTIONS] * (f[_Feature.INNER_PARALLELISM] - 1)
    terms[27] = f[_Feature.WORKING_SET]


def _compute_terms(f: FloatArray, terms: FloatArray, wastage: FloatArray) -> None:
    """Terms 0-3: values computed, dearer where cores are idle at the end."""
    vector_work = f[_Feature.VECTOR_SIZE] * f[_Feature.NUM_VECTORS] * wastage
    scalar_work = f[_Feature.NUM_SCALARS] * wastage
    inlined = f[_Feature.INLINED_CALLS] != 0
    terms[0] = np.where(inlined, 0, vector_work)
    terms[1] = np.where(inlined, 0, scalar_work)
    terms[2] = np.where(inlined, vector_work, 0)
    terms[3] = np.where(inlined, scalar_work, 0)


def _load_terms(f: FloatArray, terms: FloatArray, tasks: FloatArray) -> None:
    """Terms 5-15: what is read, per realization, per vector or scalar, and per task."""
    realizations = f[_Feature.NUM_REALIZATIONS]
    vectors, scalars = f[_Feature.NUM_VECTORS], f[_Feature.NUM_SCALARS]
    terms[5] = realizations * f[_Feature.UNIQUE_LINES_READ_PER_REALIZATION]
    terms[6] = realizations * f[_Feature.UNIQUE_BYTES_READ_PER_REALIZATION]
    terms[7] = vectors * f[_Feature.SCALAR_LOADS_PER_VECTOR]
    terms[8] = scalars * f[_Feature.SCALAR_LOADS_PER_SCALAR]
    terms[9] = vectors * f[_Feature.VECTOR_LOADS_PER_VECTOR]
    terms[10] = scalars * f[_Feature.UNIQUE_BYTES_READ_PER_VECTOR]
    terms[11] = vectors * f[_Feature.UNIQUE_BYTES_READ_PER_VECTOR]
    terms[12] = scalars * f[_Feature.UNIQUE_LINES_READ_PER_VECTOR]
    terms[13] = vectors * f[_Feature.UNIQUE_LINES_READ_PER_VECTOR]
    terms[14] = tasks * f[_Feature.UNIQUE_BYTES_READ_PER_TASK]
    terms[15] = tasks * f[_Feature.UNIQUE_LINES_READ_PER_TASK]


def _store_terms(f: FloatArray, terms: FloatArray) -> None:
    """Terms 16-23: what is written. All doubled, as the weights that Halide ships were trained with."""
    realizations, parallelism = f[_Feature.NUM_REALIZATIONS], f[_Feature.INNER_PARALLELISM]
    innermost_bytes = np.maximum(1, f[_Feature.INNERMOST_BYTES_AT_TASK])
    lines = 2 * realizations * (parallelism * (f[_Feature.BYTES_AT_TASK] / innermost_bytes))
    stored_bytes = 2 * realizations * f[_Feature.BYTES_AT_REALIZATION]
    parallel = parallelism > 1
    is_output = np.zeros(f.shape[1:], dtype=np.bool_)
    is_output[..., 0] = True
    for offset, where in enumerate((parallel, ~parallel & is_output, ~parallel & ~is_output)):
        terms[16 + offset] = np.where(where, lines, 0)
        terms[19 + offset] = np.where(where, stored_bytes, 0)
    stores = f[_Feature.NUM_VECTORS] + f[_Feature.NUM_SCALARS]
    terms[22] = np.where(parallel, 2 * stores / innermost_bytes, 0)
    # Threads that may fault on one page at once, each fault served one after the other.
    faulting_threads = np.minimum(parallelism, _PAGE_BYTES / innermost_bytes)
    terms[23] = 2 * f[_Feature.BYTES_AT_PRODUCTION] * faulting_threads * parallelism * f[_Feature.OUTER_PARALLELISM]
