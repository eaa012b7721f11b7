"""The weights file format: exact bytes, round trips, and every kind of damage."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.targets.errors import WeightsError
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import (
    Weights,
    format_weights,
    parse_weights,
    read_weights,
    weights_sha256,
    weights_size_bytes,
    write_weights,
)


def random_weights(network: Network = Network.ADAMS2019, seed: int = 0) -> Weights:
    random = np.random.default_rng(seed)

    def values(*shape: int) -> np.ndarray:
        scale = np.float32(10.0 ** random.integers(-30, 30))
        return (random.standard_normal(shape) * scale).astype(np.float32)

    return Weights(
        head1_filter=values(8, 40, 7),
        head1_bias=values(8),
        head2_filter=values(24, network.schedule_feature_count),
        head2_bias=values(24),
        conv1_filter=values(32, 32),
        conv1_bias=values(32),
    )


def same(first: Weights, second: Weights) -> bool:
    return all(np.array_equal(getattr(first, f.name), getattr(second, f.name)) for f in fields(Weights))


@given(st.sampled_from(Network), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_what_is_written_reads_back(network: Network, seed: int) -> None:
    weights = random_weights(network, seed)
    data = format_weights(weights)
    assert len(data) == weights_size_bytes(network) == {39: 17_136, 73: 20_400}[network.schedule_feature_count]
    again = parse_weights(data, "memory")
    assert again.network is network
    assert same(again, weights)
    assert format_weights(again) == data


def test_dimension_0_lies_densest_in_the_file() -> None:
    weights = random_weights()
    data = format_weights(weights)
    assert struct.unpack_from("<4I", data) == (0x68776631, 3, 3, 6)
    assert struct.unpack_from("<4I", data, 16) == (3, 8, 40, 7)
    first = struct.unpack_from("<10f", data, 32)
    assert first[:8] == tuple(weights.head1_filter[:, 0, 0])
    assert first[8:] == tuple(weights.head1_filter[:2, 1, 0])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_a_weights_error(data: bytes) -> None:
    with pytest.raises(WeightsError, match="made up"):
        parse_weights(data, "made up")


@given(st.integers(0, 17_135))
@settings(max_examples=40)
def test_any_shortened_file_is_a_weights_error(length: int) -> None:
    with pytest.raises(WeightsError, match="damaged"):
        parse_weights(format_weights(random_weights())[:length], "short")


@given(st.integers(0, 17_135), st.integers(1, 255))
@settings(max_examples=100)
def test_a_flipped_byte_is_an_error_or_another_finite_number(position: int, flip: int) -> None:
    data = bytearray(format_weights(random_weights()))
    data[position] ^= flip
    try:
        changed = parse_weights(bytes(data), "flipped")
    except WeightsError:
        return
    assert format_weights(changed) == bytes(data)


@pytest.mark.parametrize(
    ("offset", "value", "expected"),
    [
        (0, 0x12345678, "signature"),
        (4, 2, "version 2 of the pipeline features; expected version 3"),
        (8, 4, "version 4 of the schedule features; expected version 3"),
        (12, 5, "5 buffers; expected 6"),
        (16, 2, "head1_filter"),
        (20, 9, "head1_filter"),
        (32, 0x7FC00000, "NaN"),
        (32, 0x7F800000, "infinity"),
    ],
)
def test_damage_is_named(offset: int, value: int, expected: str) -> None:
    data = bytearray(format_weights(random_weights()))
    struct.pack_into("<I", data, offset, value)
    with pytest.raises(WeightsError, match=expected):
        parse_weights(bytes(data), "damaged")


def test_a_longer_file_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "long.weights"
    path.write_bytes(format_weights(random_weights()) + b"\0")
    with pytest.raises(WeightsError, match=r"17,137 bytes; expected 17,136 \(Adams2019\) or 20,400"):
        read_weights(path)


def test_a_missing_file_names_its_path(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"gone\.weights cannot be read: No such file"):
        read_weights(tmp_path / "gone.weights")
    with pytest.raises(WeightsError, match="cannot be read"):
        read_weights(tmp_path)


def test_writing_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "w.weights"
    path.write_bytes(b"old")
    weights = random_weights(seed=3)
    write_weights(weights, path)
    assert same(read_weights(path), weights)
    assert weights_sha256(weights) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    taken = tmp_path / "folder.weights"
    taken.mkdir()
    with pytest.raises(WeightsError, match="cannot be written"):
        write_weights(random_weights(), taken)
    with pytest.raises(WeightsError, match="cannot be written"):
        write_weights(random_weights(), tmp_path / "nowhere" / "w.weights")
    assert list(tmp_path.iterdir()) == [taken]


def test_a_name_that_halide_takes_for_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"end in \.weights"):
        write_weights(random_weights(), tmp_path / "updated")


def test_wrong_arrays_are_refused() -> None:
    weights = random_weights()
    with pytest.raises(WeightsError, match="head1_bias has shape"):
        replace(weights, head1_bias=np.zeros(9, dtype=np.float32))
    with pytest.raises(WeightsError, match="head2_filter has shape"):
        replace(weights, head2_filter=np.zeros((24, 40), dtype=np.float32))
    with pytest.raises(WeightsError, match="conv1_bias has NaN"):
        replace(weights, conv1_bias=np.full(32, np.nan, dtype=np.float32))


def test_weights_cannot_be_changed_by_accident() -> None:
    source = np.zeros(32, dtype=np.float32)
    weights = replace(random_weights(), conv1_bias=source)
    with pytest.raises(ValueError, match="read-only"):
        weights.conv1_bias[0] = 1
    source[0] = 1
    assert weights.conv1_bias[0] == 0
