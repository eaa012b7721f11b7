"""Grouping samples by pipeline, dropping duplicates, holding some out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.cost_model.dataset import group_samples, is_held_out, split_held_out
from halide_autotune.autotune_loop.cost_model.pipeline_batch import MAX_PAIRS, pack_batches
from halide_autotune.autotune_loop.store.featurization import Featurization
from halide_autotune.autotune_loop.store.sample_file import Sample


def sample(schedule: int, runtime_ms: float, algorithm: int = 0, pipeline_id: int = 0) -> Sample:
    schedule_features = np.full((2, 39), 1 + schedule, dtype=np.float32)
    pipeline_features = np.full((2, 287), algorithm, dtype=np.float32)
    made = Featurization(schedule_features, pipeline_features)
    return Sample(made, runtime_ms, pipeline_id or made.pipeline_id)


def test_equal_schedules_count_once_with_their_fastest_time() -> None:
    samples = [sample(index, 10.0 + index) for index in range(8)] + [sample(3, 5.0), sample(3, 50.0)]
    (batch,) = group_samples(samples, num_cores=2)
    assert len(batch) == 8
    assert batch.runtimes_ms.min() == 5
    assert sorted(batch.runtimes_ms) == [5, 10, 11, 12, 14, 15, 16, 17]
    assert batch.logs.shape == (8, 2, 40)
    assert batch.terms.shape == (8, 2, 32)
    assert batch.pipeline_inputs.shape == (2, 280)


def test_the_order_of_samples_does_not_matter() -> None:
    samples = [sample(index, 1.0 + index % 5, algorithm=index % 2) for index in range(40)]
    first, second = group_samples(samples, 2), group_samples(samples[::-1], 2)
    assert [batch.pipeline_id for batch in first] == sorted(batch.pipeline_id for batch in first)
    for one, other in zip(first, second, strict=True):
        assert one.schedule_sha256s == other.schedule_sha256s
        assert np.array_equal(one.runtimes_ms, other.runtimes_ms)


def test_pipelines_with_few_schedules_are_left_out() -> None:
    assert group_samples([sample(index, 1.0) for index in range(7)], 2) == []
    assert group_samples([sample(0, 1.0 + index) for index in range(20)], 2) == []


def test_two_pipelines_that_share_an_id_stay_apart() -> None:
    samples = [sample(index, 1.0, algorithm, pipeline_id=5) for index in range(8) for algorithm in (0, 1)]
    assert [(batch.pipeline_id, len(batch)) for batch in group_samples(samples, 2)] == [(5, 8), (5, 8)]


def test_given_ids_part_one_pipeline() -> None:
    samples = [sample(index, 1.0, pipeline_id=size) for index in range(8) for size in (9, 4)]
    assert [batch.pipeline_id for batch in group_samples(samples, 2)] == [4, 9]


@given(st.integers(8, 60), st.integers(0, 1000))
@settings(max_examples=20)
def test_what_is_held_out_stays_held_out_as_samples_grow(count: int, seed: int) -> None:
    few, many = (group_samples([sample(i, 1.0 + i) for i in range(n)], 2)[0] for n in (count, 2 * count))
    held_out_few, held_out_many = (set(split_held_out(b, 0.3, seed)[1].schedule_sha256s) for b in (few, many))
    assert held_out_few == held_out_many & set(few.schedule_sha256s)
    training, held_out = split_held_out(many, 0.3, seed)
    assert set(training.schedule_sha256s).isdisjoint(held_out.schedule_sha256s)
    assert len(training) + len(held_out) == len(many)
    assert len(training.logs) == len(training.terms) == len(training.runtimes_ms) == len(training)


def test_the_share_is_about_right() -> None:
    held_out = sum(is_held_out(f"{index:064x}", 0.2, seed=1) for index in range(5000))
    assert 850 < held_out < 1150
    assert not any(is_held_out(f"{index:064x}", 0.0, seed=1) for index in range(100))


def test_packing_keeps_every_row_in_its_place() -> None:
    samples = [sample(index, 1.0 + index, algorithm) for index in range(9) for algorithm in (0, 1)]
    batches = group_samples(samples, 2)
    packed = pack_batches(batches, seed=0)
    for place, batch in zip(packed.layout, batches, strict=True):
        row, rows, schedule, schedules, stage, stages, _ = place
        assert row % 16 == 0
        assert np.array_equal(packed.logs[row : row + rows].reshape(batch.logs.shape), batch.logs)
        assert np.array_equal(packed.terms[row : row + rows].reshape(batch.terms.shape), batch.terms)
        assert np.array_equal(packed.runtimes_ms[schedule : schedule + schedules], batch.runtimes_ms)
        assert np.array_equal(packed.pipeline_inputs[stage : stage + stages], batch.pipeline_inputs)


@pytest.mark.parametrize("count", [9, 400])
def test_pairs_have_the_faster_schedule_first(count: int) -> None:
    (batch,) = group_samples([sample(index, 1.0 + index % 7) for index in range(count)], 2)
    pairs = pack_batches([batch], seed=3).pairs
    assert (batch.runtimes_ms[pairs[:, 0]] < batch.runtimes_ms[pairs[:, 1]]).all()
    assert 0 < len(pairs) <= MAX_PAIRS
    assert np.array_equal(pairs, pack_batches([batch], seed=3).pairs)
    assert len(pack_batches([batch], seed=None).pairs) == 0
