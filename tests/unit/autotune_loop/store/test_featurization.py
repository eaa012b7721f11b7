"""Featurization files: round trips, damage, and what is derived from the features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.store.featurization import (
    MAX_STAGES,
    Featurization,
    features_of,
    format_featurization,
    read_featurization,
    uses_float,
)
from halide_autotune.targets.errors import WeightsError
from halide_autotune.weights.network import Network


def random_featurization(stages: int = 3, seed: int = 0, network: Network = Network.ADAMS2019) -> Featurization:
    random = np.random.default_rng(seed)
    schedule = np.exp(random.uniform(0, 20, (stages, network.schedule_feature_count)))
    pipeline = random.integers(0, 9, (stages, 287))
    return Featurization(schedule.astype(np.float32), pipeline.astype(np.float32))


@given(st.sampled_from(Network), st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_what_is_written_reads_back(network: Network, stages: int, seed: int) -> None:
    made = random_featurization(stages, seed, network)
    data = format_featurization(made)
    assert len(data) == 4 * stages * (network.schedule_feature_count + 287)
    read = features_of(data, network)
    assert np.array_equal(read.schedule_features, made.schedule_features)
    assert np.array_equal(read.pipeline_features, made.pipeline_features)
    assert (read.stages, read.network) == (stages, network)
    assert (read.schedule_sha256, read.pipeline_id) == (made.schedule_sha256, made.pipeline_id)


@given(st.binary(max_size=3000))
def test_arbitrary_bytes_give_features_or_an_error(data: bytes) -> None:
    try:
        read = features_of(data, Network.ADAMS2019)
    except ValueError as error:
        assert str(error).startswith("it has")
    else:
        assert format_featurization(read) == data


@pytest.mark.parametrize("size_bytes", [0, 4, 1303, 1305, 1304 * (MAX_STAGES + 1)])
def test_a_size_that_is_no_number_of_stages_is_refused(tmp_path: Path, size_bytes: int) -> None:
    path = tmp_path / "x.featurization"
    path.write_bytes(bytes(size_bytes))
    with pytest.raises(WeightsError, match="1,304 for each of 1 to 32,164 stages of Adams2019 were expected"):
        read_featurization(path)


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (0, np.nan, "schedule feature outside 0 to 1e14"),
        (38, -1, "schedule feature outside"),
        (5, np.inf, "schedule feature outside"),
        (5, 2e14, "overflowed"),
        (39, np.nan, "pipeline feature"),
        (325, -1, "pipeline feature"),
        (100, np.inf, "pipeline feature"),
    ],
)
def test_impossible_features_are_refused(tmp_path: Path, column: int, value: float, expected: str) -> None:
    rows = np.zeros((2, 326), dtype="<f4")
    rows[1, column] = value
    path = tmp_path / "bad.featurization"
    path.write_bytes(rows.tobytes())
    with pytest.raises(WeightsError, match=rf"{path} is damaged: .*{expected}"):
        read_featurization(path)


def test_a_missing_file_names_its_path(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"gone\.featurization cannot be read"):
        read_featurization(tmp_path / "gone.featurization")


def test_the_pipeline_id_depends_on_the_algorithm_alone() -> None:
    first, second = random_featurization(seed=1), random_featurization(seed=2)
    mixed = Featurization(first.schedule_features, second.pipeline_features)
    assert mixed.pipeline_id == second.pipeline_id != first.pipeline_id
    assert mixed.schedule_sha256 == first.schedule_sha256 != second.schedule_sha256


@given(st.integers(0, 2**32 - 1))
def test_the_pipeline_id_is_a_positive_int32(seed: int) -> None:
    assert 0 < random_featurization(1, seed).pipeline_id < 2**31


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (5, False),  # the mask of the types in use does not count
        (7 + 4, False),  # a constant of type UInt64
        (7 + 5, True),  # a constant of type Float
        (7 + 7 * 23 + 6, True),  # a let of type Double
        (7 + 7 * 24 + 5, False),  # a memory access comes with an operation, which is what counts
    ],
)
def test_uses_float(column: int, expected: bool) -> None:
    pipeline = np.zeros((2, 287), dtype=np.float32)
    pipeline[1, column] = 1
    assert uses_float(Featurization(np.zeros((2, 39), dtype=np.float32), pipeline)) is expected
