"""Samples prepared for training: one dense batch for each pipeline."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from halide_autotune.autotune_loop.cost_model.network import network_inputs
from halide_autotune.autotune_loop.cost_model.pipeline_batch import PipelineBatch
from halide_autotune.autotune_loop.cost_model.terms import cost_terms
from halide_autotune.autotune_loop.store.sample_file import Sample

MIN_UNIQUE_SCHEDULES = 8  # of one pipeline; Halide's tool skips pipelines with fewer


def group_samples(samples: Iterable[Sample], num_cores: int) -> list[PipelineBatch]:
    """Batches of the pipelines with at least 8 distinct schedules, by ascending pipeline id.

    Samples with one id but different pipeline features are different pipelines. Samples with the same schedule
    features count once, with their fastest runtime. The order of the samples does not matter.
    """
    pipelines: dict[tuple[int, bytes], dict[str, Sample]] = {}
    for sample in samples:
        key = (sample.pipeline_id, sample.featurization.pipeline_features.tobytes())
        schedules = pipelines.setdefault(key, {})
        known = schedules.get(sample.featurization.schedule_sha256)
        if known is None or sample.runtime_ms < known.runtime_ms:
            schedules[sample.featurization.schedule_sha256] = sample
    return [
        _batch(pipeline_id, pipelines[pipeline_id, features], num_cores)
        for pipeline_id, features in sorted(pipelines)
        if len(pipelines[pipeline_id, features]) >= MIN_UNIQUE_SCHEDULES
    ]


def split_held_out(batch: PipelineBatch, share: float, seed: int) -> tuple[PipelineBatch, PipelineBatch]:
    """The schedules to learn from, and those to judge the result by; see `is_held_out`."""
    held_out = np.array([is_held_out(sha256, share, seed) for sha256 in batch.schedule_sha256s], dtype=np.bool_)
    return _select(batch, ~held_out), _select(batch, held_out)


def is_held_out(schedule_sha256: str, share: float, seed: int) -> bool:
    """Whether a schedule is held out of training: its hash and the seed alone decide."""
    digest = hashlib.sha256(f"{seed}:{schedule_sha256}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < share


def _batch(pipeline_id: int, schedules: dict[str, Sample], num_cores: int) -> PipelineBatch:
    ordered = [schedules[sha256] for sha256 in sorted(schedules)]
    schedule_features = np.stack([sample.featurization.schedule_features for sample in ordered])
    logs, pipeline_inputs = network_inputs(schedule_features, ordered[0].featurization.pipeline_features)
    return PipelineBatch(
        pipeline_id=pipeline_id,
        schedule_sha256s=tuple(sorted(schedules)),
        logs=logs,
        terms=cost_terms(schedule_features, num_cores, ordered[0].featurization.network),
        pipeline_inputs=pipeline_inputs,
        runtimes_ms=np.array([sample.runtime_ms for sample in ordered], dtype=np.float32),
    )


def _select(batch: PipelineBatch, chosen: npt.NDArray[np.bool_]) -> PipelineBatch:
    return replace(
        batch,
        schedule_sha256s=tuple(itertools.compress(batch.schedule_sha256s, chosen)),
        logs=batch.logs[chosen],
        terms=batch.terms[chosen],
        runtimes_ms=batch.runtimes_ms[chosen],
    )
