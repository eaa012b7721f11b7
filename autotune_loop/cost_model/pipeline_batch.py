"""The schedules of one pipeline as arrays, and those of all pipelines side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from halide_autotune.autotune_loop.cost_model.terms import TERM_COUNT, FloatArray


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


IntArray = npt.NDArray[np.int32]

MAX_PAIRS = 8192  # of one pipeline; more schedules than about 128 have their pairs sampled
_ROW_MULTIPLE = 16  # rows of 40 or 74 floats then start at multiples of 64 bytes: TensorFlow slices without copying


class PackedBatches(NamedTuple):
    """Batches side by side.

    Attributes:
        logs: (rows, 40 or 74), a row for each stage of each schedule; batches are padded to a multiple of 16 rows.
        terms: (rows, 32).
        pipeline_inputs: (stages of all pipelines, 280).
        runtimes_ms: (schedules,).
        pairs: (pairs, 2) positions within a batch, the faster schedule first.
        layout: (pipelines, 7): first row, number of rows, first schedule, number of schedules, first stage,
            number of stages, first pair. The pairs of a batch end where those of the next begin.
    """

    logs: FloatArray
    terms: FloatArray
    pipeline_inputs: FloatArray
    runtimes_ms: FloatArray
    pairs: IntArray
    layout: IntArray


def pack_batches(batches: Sequence[PipelineBatch], seed: int | None) -> PackedBatches:
    """Put batches side by side; with a seed, also choose the pairs that the rank loss compares."""
    logs, terms, pairs, layout = [], [], [], []
    first_row = first_schedule = first_stage = first_pair = 0
    for batch in batches:
        schedules, stages, columns = batch.logs.shape
        rows = schedules * stages
        padding = ((0, -rows % _ROW_MULTIPLE), (0, 0))
        logs.append(np.pad(batch.logs.reshape(rows, columns), padding))
        terms.append(np.pad(batch.terms.reshape(rows, TERM_COUNT), padding))
        pairs.append(_ordered_pairs(batch, seed) if seed is not None else np.empty((0, 2), dtype=np.int32))
        layout.append((first_row, rows, first_schedule, schedules, first_stage, stages, first_pair))
        first_row += rows + padding[0][1]
        first_schedule += schedules
        first_stage += stages
        first_pair += len(pairs[-1])
    return PackedBatches(
        logs=np.concatenate(logs),
        terms=np.concatenate(terms),
        pipeline_inputs=np.concatenate([batch.pipeline_inputs for batch in batches]),
        runtimes_ms=np.concatenate([batch.runtimes_ms for batch in batches]),
        pairs=np.concatenate(pairs),
        layout=np.array(layout, dtype=np.int32),
    )


def _ordered_pairs(batch: PipelineBatch, seed: int) -> IntArray:
    """Pairs of schedules with different runtimes: all of them, or a seeded sample when there are many."""
    random = np.random.default_rng((seed, batch.pipeline_id & 0xFFFFFFFF))
    count = len(batch)
    if count * (count - 1) // 2 <= MAX_PAIRS:
        first, second = np.triu_indices(count, k=1)
    else:
        first = random.integers(0, count, MAX_PAIRS)
        second = (first + random.integers(1, count, MAX_PAIRS)) % count
    swap = batch.runtimes_ms[first] > batch.runtimes_ms[second]
    faster, slower = np.where(swap, second, first), np.where(swap, first, second)
    differs = batch.runtimes_ms[first] != batch.runtimes_ms[second]
    return np.stack([faster[differs], slower[differs]], axis=1).astype(np.int32)
