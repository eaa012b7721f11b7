"""Sample files: round trips, damage, and equality with what Halide's own program writes."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.store.featurization import Featurization, format_featurization
from halide_autotune.autotune_loop.store.sample_file import Sample, format_sample, read_sample, write_sample
from halide_autotune.targets.errors import WeightsError
from halide_autotune.targets.halide_install import find_halide_install

INT32 = st.integers(-(2**31), 2**31 - 1)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("samples") / "a.sample"


def random_featurization(seed: int = 0) -> Featurization:
    random = np.random.default_rng(seed)
    schedule, pipeline = random.uniform(0, 1e6, (3, 39)), random.integers(0, 9, (3, 287))
    return Featurization(schedule.astype(np.float32), pipeline.astype(np.float32))


@given(
    runtime_ms=st.floats(2.0**-60, 1e5, width=32), pipeline_id=INT32, schedule_id=INT32, seed=st.integers(0, 2**32 - 1)
)
@settings(max_examples=50)
def test_what_is_written_reads_back(
    path: Path, runtime_ms: float, pipeline_id: int, schedule_id: int, seed: int
) -> None:
    sample = Sample(random_featurization(seed), runtime_ms, pipeline_id, schedule_id)
    write_sample(sample, path)
    read = read_sample(path)
    assert (read.runtime_ms, read.pipeline_id, read.schedule_id) == (runtime_ms, pipeline_id, schedule_id)
    assert read.featurization.schedule_sha256 == sample.featurization.schedule_sha256
    assert format_sample(read) == format_sample(sample)


@given(data=st.binary(max_size=1400))
def test_arbitrary_bytes_give_a_sample_or_a_weights_error(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    try:
        read = read_sample(path)
    except WeightsError as error:
        assert str(path) in str(error)
    else:
        assert format_sample(read) == data


def test_the_file_equals_what_halide_writes(tmp_path: Path) -> None:
    featurization = random_featurization()
    (tmp_path / "a.featurization").write_bytes(format_featurization(featurization))
    program = find_halide_install().bin_dir / "featurization_to_sample"
    paths = [str(tmp_path / "a.featurization"), "0.00123", "77", "5", str(tmp_path / "halide.sample")]
    subprocess.run([str(program), *paths], check=True)
    write_sample(Sample(featurization, 1.23, 77, 5), tmp_path / "ours.sample")
    assert (tmp_path / "ours.sample").read_bytes() == (tmp_path / "halide.sample").read_bytes()


@pytest.mark.parametrize("runtime_ms", [0.0, -1.0, float("nan"), float("inf"), 1e-60, 100_001.0, 1e300])
def test_a_runtime_that_halides_tool_cannot_take_is_refused(runtime_ms: float) -> None:
    with pytest.raises(WeightsError, match="expected a time above 0 and at most 100,000 ms"):
        Sample(random_featurization(), runtime_ms, 1)


def test_an_id_that_does_not_fit_is_refused() -> None:
    with pytest.raises(WeightsError, match="pipeline_id 2147483648"):
        Sample(random_featurization(), 1.0, pipeline_id=2**31)


def test_damage_is_named(tmp_path: Path) -> None:
    data = format_sample(Sample(random_featurization(), 1.0, 1))
    path = tmp_path / "a.sample"
    for broken, expected in (
        (b"", "fewer than its trailer of 12"),
        (data[:-1], r"^The sample .*a\.sample is damaged: it has 3,923 bytes where 1,304 for each .* and 12 more were"),
        (b"\0\0\x80\xbf" + data[4:], r"^The sample .*a\.sample is damaged: it has a schedule feature outside"),
        (data[:-12] + struct.pack("<fii", 0, 1, 1), r"a\.sample is unusable: .* 0.0 ms"),
    ):
        path.write_bytes(broken)
        with pytest.raises(WeightsError, match=expected):
            read_sample(path)
    with pytest.raises(WeightsError, match="cannot be read"):
        read_sample(tmp_path / "gone.sample")


def test_a_sample_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    sample = Sample(random_featurization(), 1.0, 1)
    with pytest.raises(WeightsError, match=r"must end in \.sample"):
        write_sample(sample, tmp_path / "a.bin")
    write_sample(sample, tmp_path / "a.sample")
    assert [path.name for path in tmp_path.iterdir()] == ["a.sample"]
    (tmp_path / "taken.sample").mkdir()
    with pytest.raises(WeightsError, match="cannot be written"):
        write_sample(sample, tmp_path / "taken.sample")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.sample", "taken.sample"]
