"""The shapes, strides and values of the buffers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from halide_autotune.targets.build.runner_input_file import write_input_file
from tests.unit.targets.conftest import Runner, RunnerResult
from tests.unit.targets.raw_arrays import read_arrays, write_array_from
from tests.unit.targets.runner_kernels import TYPES, TYPES_EXTENTS, TYPES_MINS

Array = numpy.ndarray[Any, numpy.dtype[Any]]


def buffers(result: RunnerResult) -> dict[str, dict[str, object]]:
    assert result.exit_code == 0, result.events
    return {event["name"].partition("$")[0]: event for event in result.all("buffer")}


def shape(buffer: dict[str, object]) -> tuple[object, object, object]:
    return buffer["min"], buffer["extent"], buffer["stride"]


def test_a_stencil_reads_more_than_it_writes(runner: Runner) -> None:
    found = buffers(runner("--kernel", "blur_plain"))
    assert shape(found["image"]) == ([-1, -1], [102, 62], [1, 102])
    assert shape(found["blurred"]) == ([0, 0], [100, 60], [1, 100])
    assert (found["image"]["role"], found["blurred"]["role"]) == ("input", "output")


def test_sizes_can_be_given(runner: Runner) -> None:
    found = buffers(runner("--kernel", "blur_plain", "--size", "blurred=8x300"))
    # The hull with the input's own estimate, 100 x 60.
    assert shape(found["image"]) == ([-1, -1], [101, 302], [1, 101])
    assert found["blurred"]["extent"] == [8, 300]
    found = buffers(runner("--kernel", "blur_plain", "--size", "blurred=8x3", "--size", "image=2x2"))
    assert shape(found["image"]) == ([-1, -1], [10, 5], [1, 10])


def test_nothing_to_do_is_done(runner: Runner) -> None:
    assert buffers(runner("--kernel", "blur_plain", "--size", "blurred=0x3"))["blurred"]["extent"] == [0, 3]


def test_a_schedule_that_rounds_up_gets_a_wider_output(runner: Runner) -> None:
    found = buffers(runner("--kernel", "blur_rounded_up"))
    assert shape(found["blurred"]) == ([0, 0], [112, 60], [1, 112])
    assert found["image"]["extent"] == [114, 62]


def test_a_fixed_output_wins_over_a_wrong_estimate(runner: Runner, tmp_path: Path) -> None:
    found = buffers(runner("--kernel", "fixed_shape", "--write-reference", tmp_path / "ref"))
    assert shape(found["turned"]) == ([0, 0], [12, 8], [1, 12])
    assert read_arrays(tmp_path / "ref")[0].values.shape == (8, 12)
    assert runner("--kernel", "fixed_shape", "--reference", tmp_path / "ref").exit_code == 0


def test_a_schedule_for_larger_outputs_says_so(runner: Runner) -> None:
    assert runner("--kernel", "for_larger_outputs").exit_code == 0
    result = runner("--kernel", "for_larger_outputs", "--size", "spread=40", "--size", "image=40")
    assert result.exit_code == 3
    assert "its schedule was made for a larger output. Give a larger --size" in result.one("error")["message"]


def test_a_schedule_without_estimates_is_called_like_the_others(runner: Runner, tmp_path: Path) -> None:
    assert runner("--kernel", "by_autoscheduler", "--write-reference", tmp_path / "ref").exit_code == 0
    result = runner("--kernel", "by_hand", "--reference", tmp_path / "ref")
    assert buffers(result)["product"]["extent"] == [24, 5]
    assert result.one("compared")["mismatches"] == 0


@pytest.mark.parametrize(
    ("kernel", "image_stride", "output_stride"),
    [
        ("interleaved", [3, 90, 1], [3, 90, 1]),
        ("interleaved_padded", [4, 120, 1], [3, 90, 1]),
        # A row of two values a channel is shorter than the pixel stride of three.
        ("interleaved_narrow", [3, 6, 1], [3, 6, 1]),
    ],
)
def test_stride_constraints_are_kept(
    runner: Runner, kernel: str, image_stride: list[int], output_stride: list[int]
) -> None:
    found = buffers(runner("--kernel", kernel))
    assert found["image"]["stride"] == image_stride
    assert found["brighter"]["stride"] == output_stride


def test_layout_does_not_change_values(runner: Runner, tmp_path: Path) -> None:
    assert runner("--kernel", "interleaved", "--write-reference", tmp_path / "ref").exit_code == 0
    compared = runner("--kernel", "interleaved_padded", "--reference", tmp_path / "ref").one("compared")
    assert (compared["elements"], compared["mismatches"]) == (1800, 0)


def mix64(value: Array) -> Array:
    value = value + numpy.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    mixed: Array = value ^ (value >> numpy.uint64(31))
    return mixed


def expected_hashes(seed: int, argument: int) -> Array:
    """The hash of every element of an input of `types`, as (rows, columns)."""
    columns = numpy.arange(TYPES_EXTENTS[0], dtype="i8") + TYPES_MINS[0]
    rows = numpy.arange(TYPES_EXTENTS[1], dtype="u8") + numpy.uint64(TYPES_MINS[1])
    start = mix64(mix64(numpy.array([seed], "u8")) ^ numpy.uint64(argument))
    row_hashes = mix64(start ^ rows)[:, None]
    low, high = row_hashes.astype("u4"), (row_hashes >> numpy.uint64(32)).astype("u4")
    value = (columns.astype("u4") * numpy.uint32(0x9E3779B9) + low) ^ high
    value = (value ^ (value >> 16)) * numpy.uint32(0x7FEB352D)
    value = (value ^ (value >> 15)) * numpy.uint32(0x846CA68B)
    mixed: Array = value ^ (value >> 16)
    return mixed


def expected_values(name: str, hashes: Array) -> Array:
    scales = {"float16": (21, 2.0**-11), "float32": (8, 2.0**-24), "float64": (0, 2.0**-32)}
    if name in scales:
        shift, scale = scales[name]
        return ((hashes >> shift) * numpy.float64(scale)).astype(name)
    if name == "bool":
        return (hashes >> 31).astype("?")
    bits = numpy.dtype(name).itemsize * 8
    unsigned = hashes >> (32 - bits if bits <= 16 else 22)
    return unsigned.astype(f"u{bits // 8}").view(name)


@pytest.mark.parametrize("seed", [0, 12345])
def test_inputs_are_a_hash_of_their_coordinates(runner: Runner, tmp_path: Path, seed: int) -> None:
    result = runner("--kernel", "types", "--seed", str(seed), "--write-reference", tmp_path / "ref")
    assert result.exit_code == 0
    arrays = read_arrays(tmp_path / "ref")[: len(TYPES)]
    assert [array.name.partition("$")[0] for array in arrays] == [f"out_{name}" for name in TYPES]
    for index, (name, array) in enumerate(zip(TYPES, arrays, strict=True)):
        assert array.mins == TYPES_MINS
        expected = expected_values(name, expected_hashes(seed, index))
        assert array.values.dtype == expected.dtype
        numpy.testing.assert_array_equal(array.values, expected, err_msg=name)


def test_inputs_from_files(runner: Runner, tmp_path: Path) -> None:
    pixels = numpy.random.default_rng(5).integers(0, 256, (62, 102), dtype="u1")
    write_array_from((-1, -1), pixels, tmp_path / "in")
    result = runner(
        "--kernel", "blur_tiled", "--input", f"image={tmp_path / 'in'}", "--write-reference", tmp_path / "ref"
    )
    assert buffers(result)["image"]["source"] == "file"
    wide = pixels.astype("u2")
    expected = sum(wide[dy : dy + 60, dx : dx + 100] for dy in range(3) for dx in range(3))
    numpy.testing.assert_array_equal(read_arrays(tmp_path / "ref")[0].values, expected)


def test_an_input_file_is_laid_out_as_the_kernel_wants(runner: Runner, tmp_path: Path) -> None:
    pixels = numpy.random.default_rng(5).integers(0, 255, (3, 20, 30), dtype="u1")
    write_input_file(pixels, tmp_path / "in")
    options = ("--input", f"image={tmp_path / 'in'}", "--write-reference", tmp_path / "ref")
    result = runner("--kernel", "interleaved_padded", *options)
    assert buffers(result)["image"]["stride"] == [4, 120, 1]
    numpy.testing.assert_array_equal(read_arrays(tmp_path / "ref")[0].values, pixels + 1)


def test_scalars(runner: Runner, tmp_path: Path) -> None:
    def total(*options: str) -> float:
        result = runner("--kernel", "scalars", *options, "--write-reference", tmp_path / "ref")
        assert result.exit_code == 0, result.events
        return float(read_arrays(tmp_path / "ref")[0].values[0])

    assert total() == -5 + 60000 - 2**40 + 0.5 + 0.25
    assert total("--scalar", "flag=false") == 0
    others = ["tiny=-128", "small=65535", "large=-1099511627777", "half_way=-1.5e1", "precise=0.125"]
    given = [part for other in others for part in ("--scalar", other)]
    assert total(*given) == -128 + 65535 - 1099511627777 - 15 + 0.125


def test_two_outputs_of_different_shape_and_type(runner: Runner, tmp_path: Path) -> None:
    assert runner("--kernel", "two_outputs", "--write-reference", tmp_path / "ref").exit_code == 0
    low, column, image = read_arrays(tmp_path / "ref")
    assert (image.name, image.values.tolist()) == ("image", [[0, 16], [0, 8]])
    assert (low.values.dtype, low.values.shape) == (numpy.dtype("u1"), (8, 16))
    assert (column.values.dtype, column.values.shape) == (numpy.dtype("u4"), (8,))
    compared = runner("--kernel", "two_outputs", "--reference", tmp_path / "ref").all("compared")
    assert [(event["elements"], event["mismatches"]) for event in compared] == [(128, 0), (8, 0)]


def test_a_buffer_without_dimensions(runner: Runner, tmp_path: Path) -> None:
    write_input_file(numpy.array(41, dtype="i4"), tmp_path / "in")
    options = ("--input", f"image={tmp_path / 'in'}", "--write-reference", tmp_path / "ref")
    assert runner("--kernel", "single_number", *options).exit_code == 0
    assert read_arrays(tmp_path / "ref")[0].values == 42


def test_least_coordinates_can_be_given(runner: Runner) -> None:
    found = buffers(runner("--kernel", "blur_plain", "--size", "blurred=8x3@-5x7", "--size", "image=2x2@-5x7"))
    assert shape(found["blurred"]) == ([-5, 7], [8, 3], [1, 8])
    assert shape(found["image"]) == ([-6, 6], [10, 5], [1, 10])


@pytest.mark.parametrize(
    "size", ["", "8", "8x", "8x3x2", "8x3@", "8x3@1", "8x3@1x2x3", "-8x3", "8x3@1x-", "8@1x3@2", "8x3 "]
)
def test_a_wrong_size_is_one_message(native_runner: Runner, size: str) -> None:
    result = native_runner("--kernel", "blur_plain", "--size", f"blurred={size}")
    assert result.exit_code == 2
    assert "expected 2 extents such as 64x48" in result.one("error")["message"]


def test_exact_outputs_are_not_made_larger(runner: Runner) -> None:
    result = runner("--kernel", "blur_rounded_up", "--exact-outputs", "--size", "blurred=100x60")
    assert (result.exit_code, result.one("error")["kind"]) == (3, "halide")
    assert "blurred" in result.one("error")["message"]
    found = buffers(runner("--kernel", "blur_rounded_up", "--exact-outputs", "--size", "blurred=112x60"))
    assert found["blurred"]["extent"] == [112, 60]
