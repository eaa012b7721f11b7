"""References, tolerances, and everything that can go wrong in a call."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from halide_autotune.targets.build.runner_input_file import write_input_file
from tests.unit.targets.conftest import ARM, X86, Architecture, Runner
from tests.unit.targets.raw_arrays import read_arrays, write_array_from
from tests.unit.targets.runner_kernels import TYPES

HALF = list(TYPES).index("float16")


@pytest.fixture
def blur_reference(runner: Runner, tmp_path: Path) -> Path:
    result = runner("--kernel", "blur_plain", "--write-reference", tmp_path / "blur.ref")
    assert result.exit_code == 0
    assert result.one("reference")["path"] == str(tmp_path / "blur.ref")
    assert [path.name for path in tmp_path.iterdir()] == ["blur.ref"]
    return tmp_path / "blur.ref"


@pytest.mark.parametrize("kernel", ["blur_plain", "blur_tiled", "blur_rounded_up"])
def test_schedules_agree(runner: Runner, blur_reference: Path, kernel: str) -> None:
    result = runner("--kernel", kernel, "--reference", blur_reference)
    assert result.exit_code == 0
    compared = result.one("compared")
    assert (compared["elements"], compared["mismatches"], compared["accepted"]) == (6000, 0, True)
    assert compared["max_absolute_error"] == 0
    assert compared["first_mismatch"] == []


@pytest.mark.parametrize("kernel", ["types", "blur_plain", "two_outputs"])
def test_architectures_agree(runner_of: Callable[[Architecture], Runner], tmp_path: Path, kernel: str) -> None:
    native, arm = runner_of(X86), runner_of(ARM)
    assert native("--kernel", kernel, "--write-reference", tmp_path / "x86").exit_code == 0
    assert arm("--kernel", kernel, "--write-reference", tmp_path / "arm").exit_code == 0
    pairs = zip(read_arrays(tmp_path / "x86"), read_arrays(tmp_path / "arm"), strict=True)
    for ours, theirs in pairs:
        numpy.testing.assert_array_equal(ours.values, theirs.values)
    assert arm("--kernel", kernel, "--reference", tmp_path / "x86").exit_code == 0


def test_a_wrong_kernel_is_not_timed(runner: Runner, blur_reference: Path) -> None:
    result = runner("--kernel", "blur_wrong", "--reference", blur_reference, "--time")
    assert result.exit_code == 4
    compared = result.one("compared")
    assert (compared["mismatches"], compared["max_absolute_error"]) == (6000, 1)
    assert compared["accepted"] is False
    assert compared["first_mismatch"] == [0, 0]
    assert compared["actual"] == compared["expected"] + 1
    assert result.one("error")["kind"] == "wrong_output"
    assert result.all("timed") == result.all("done") == []


def test_one_wrong_element_is_found(runner: Runner, blur_reference: Path) -> None:
    result = runner("--kernel", "blur_wrong_corner", "--reference", blur_reference)
    assert result.exit_code == 4
    compared = result.one("compared")
    assert (compared["mismatches"], compared["max_absolute_error"]) == (1, 3)
    assert compared["first_mismatch"] == [99, 59]


def test_a_larger_input_than_the_references_is_told(runner: Runner, tmp_path: Path) -> None:
    """The edge is then elsewhere: the output differs, and not because the kernel computes wrongly."""
    assert runner("--kernel", "edge", "--write-reference", tmp_path / "ref").exit_code == 0
    result = runner("--kernel", "edge_rounded_up", "--reference", tmp_path / "ref", "--time")
    assert result.exit_code == 3
    assert (result.one("error")["kind"], result.one("compared")["mismatches"]) == ("halide", 1)
    wanted = "requires a larger input 'image' than the reference: from 0 to 32 in dimension 0, not from 0 to 19"
    assert wanted in result.one("error")["message"]
    assert result.all("timed") == []


def test_inputs_are_as_large_as_the_references(runner: Runner, tmp_path: Path) -> None:
    assert runner("--kernel", "edge_rounded_up", "--write-reference", tmp_path / "ref").exit_code == 0
    result = runner("--kernel", "edge", "--reference", tmp_path / "ref")
    assert result.exit_code == 0
    assert [(b["min"], b["extent"]) for b in result.all("buffer") if b["name"] == "image"] == [([0], [33])]


def test_other_data_is_a_wrong_output(runner: Runner, blur_reference: Path) -> None:
    assert runner("--kernel", "blur_plain", "--reference", blur_reference, "--seed", "1").exit_code == 4


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        (["--integer-tolerance", "3"], 0),
        (["--integer-tolerance", "2"], 4),
        (["--mismatch-share", "0.0002"], 0),
        (["--mismatch-share", "0.0001"], 4),
    ],
)
def test_integer_tolerances(native_runner: Runner, tmp_path: Path, options: list[str], exit_code: int) -> None:
    native_runner("--kernel", "blur_plain", "--write-reference", tmp_path / "ref")
    result = native_runner("--kernel", "blur_wrong_corner", "--reference", tmp_path / "ref", *options)
    assert result.exit_code == exit_code


def test_integers_below_zero_are_near_those_above(runner: Runner, tmp_path: Path) -> None:
    assert runner("--kernel", "around_zero", "--write-reference", tmp_path / "ref").exit_code == 0
    options = ("--kernel", "around_zero_nearly", "--reference", tmp_path / "ref", "--integer-tolerance")
    assert runner(*options, "1").exit_code == 0
    result = runner(*options, "0")
    compared = result.one("compared")
    assert result.exit_code == 4
    assert (compared["mismatches"], compared["expected"], compared["actual"]) == (400, -20, -19)
    assert compared["max_absolute_error"] == 1


@pytest.mark.parametrize(
    ("far_scale", "far_share", "exit_code"),
    [("0.1", "0", 0), ("0.0001", "0", 4), ("0.0001", "0.0002", 0), ("0", "0", 4), ("0", "1", 0)],
)
def test_few_elements_may_be_far_out(
    native_runner: Runner, tmp_path: Path, far_scale: str, far_share: str, exit_code: int
) -> None:
    native_runner("--kernel", "blur_plain", "--write-reference", tmp_path / "ref")
    options = ["--mismatch-share", "0.01", "--far-scale", far_scale, "--far-share", far_share]
    result = native_runner("--kernel", "blur_wrong_corner", "--reference", tmp_path / "ref", *options)
    assert result.exit_code == exit_code
    assert result.one("compared")["far_mismatches"] == (far_scale != "0.1")


def test_what_is_not_finite_is_far_out(runner: Runner, tmp_path: Path) -> None:
    assert runner("--kernel", "poisoned", "--write-reference", tmp_path / "ref").exit_code == 0
    options = ["--mismatch-share", "1", "--far-scale", "1", "--far-share", "0.01"]
    result = runner("--kernel", "scaled", "--reference", tmp_path / "ref", *options)
    assert result.exit_code == 4
    assert result.one("compared")["far_mismatches"] == 20


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        ([], 4),
        (["--float-relative", "0.00009"], 4),
        (["--float-relative", "0.00011"], 0),
        (["--float-absolute-scale", "0.00009"], 4),
        (["--float-absolute-scale", "0.00011"], 0),
        (["--float-relative", "0.00006", "--float-absolute-scale", "0.00006"], 0),
        (["--integer-tolerance", "1000"], 4),
    ],
)
@pytest.mark.parametrize("kernel", ["scaled", "negated"])
def test_float_tolerances(runner: Runner, tmp_path: Path, kernel: str, options: list[str], exit_code: int) -> None:
    assert runner("--kernel", kernel, "--write-reference", tmp_path / "ref").exit_code == 0
    result = runner("--kernel", f"{kernel}_nearly", "--reference", tmp_path / "ref", *options)
    assert result.exit_code == exit_code
    assert 0 < result.one("compared")["max_absolute_error"] < 4e-4


def test_nan_and_infinity_equal_themselves_alone(runner: Runner, tmp_path: Path) -> None:
    tolerance = ("--float-relative", "1", "--float-absolute-scale", "1")
    assert runner("--kernel", "poisoned", "--write-reference", tmp_path / "ref").exit_code == 0
    assert runner("--kernel", "poisoned", "--reference", tmp_path / "ref").exit_code == 0
    result = runner("--kernel", "scaled", "--reference", tmp_path / "ref", *tolerance)
    assert result.exit_code == 4
    compared = result.one("compared")
    assert (compared["mismatches"], compared["first_mismatch"]) == (20, [3, 0])
    assert compared["expected"] is None


def test_a_half_float_is_compared_as_a_number(runner: Runner, tmp_path: Path) -> None:
    runner("--kernel", "types", "--write-reference", tmp_path / "ref")
    content = bytearray((tmp_path / "ref").read_bytes())
    half = read_arrays(tmp_path / "ref")[HALF].values.tobytes()
    start = content.index(half)
    value = numpy.frombuffer(content[start : start + 2], "<f2")[0]
    content[start : start + 2] = numpy.float16(-2.5).tobytes()
    (tmp_path / "ref").write_bytes(content)
    result = runner("--kernel", "types", "--reference", tmp_path / "ref")
    assert result.exit_code == 4
    compared = result.all("compared")[HALF]
    assert (compared["mismatches"], compared["expected"]) == (1, -2.5)
    assert compared["actual"] == float(value)


def test_a_reference_of_another_kernel(runner: Runner, blur_reference: Path) -> None:
    result = runner("--kernel", "scaled", "--reference", blur_reference)
    assert (result.exit_code, result.one("error")["kind"]) == (5, "reference")
    assert "was made for another kernel: it has 'blurred" in result.one("error")["message"]


@pytest.mark.parametrize(
    ("kernel", "least", "computed", "common"),
    [
        ("blur_in_strips", "0.9", "100x56", "100x56"),
        ("blur_in_wide_strips", "0.8", "112x56", "100x56"),
        ("blur_in_one_strip", "0.6", "100x40", "100x40"),
        ("blur_rounded_up", "1", "112x60", "100x60"),
    ],
)
def test_what_both_compute_is_compared(
    runner: Runner, blur_reference: Path, kernel: str, least: str, computed: str, common: str
) -> None:
    result = runner("--kernel", kernel, "--reference", blur_reference, "--least-common", least)
    assert result.exit_code == 0, result.events
    compared = result.one("compared")
    assert [compared[key] for key in ("computed", "reference", "common")] == [computed, "100x60", common]
    width, height = (int(extent) for extent in common.split("x"))
    assert (compared["elements"], compared["mismatches"]) == (width * height, 0)


def test_a_reference_of_strips(runner: Runner, tmp_path: Path) -> None:
    assert runner("--kernel", "blur_in_strips", "--write-reference", tmp_path / "ref").exit_code == 0
    result = runner("--kernel", "blur_wrong_corner", "--reference", tmp_path / "ref", "--least-common", "0.9")
    assert result.exit_code == 0, "the wrong corner is not in the strips"
    assert result.one("compared")["elements"] == 5600
    shifted = ("--size", "blurred=90x50@20x10")
    result = runner("--kernel", "blur_plain", "--reference", tmp_path / "ref", "--least-common", "0.5", *shifted)
    assert result.exit_code == 0, result.events
    compared = result.one("compared")
    assert [compared[key] for key in ("computed", "reference", "common")] == ["90x50@20x10", "100x56", "80x46@20x10"]


def test_a_wrong_part_is_found(runner: Runner, blur_reference: Path) -> None:
    options = ("--reference", blur_reference, "--least-common", "0.5")
    result = runner("--kernel", "blur_in_strips_wrong", *options)
    assert (result.exit_code, result.one("compared")["mismatches"]) == (4, 5600)
    result = runner("--kernel", "blur_wrong_corner", "--size", "blurred=50x40@50x20", "--reference", blur_reference)
    assert "cannot be compared" in result.one("error")["message"]
    size = ("--size", "blurred=80x60@20x0")
    result = runner("--kernel", "blur_wrong_corner", *size, *options)
    assert (result.exit_code, result.one("compared")["first_mismatch"]) == (4, [99, 59])


@pytest.mark.parametrize(
    ("arguments", "least", "shape"),
    [
        (("blur_in_strips",), "1", "100x56"),
        (("blur_in_strips",), "0.94", "100x56"),
        (("blur_in_one_strip",), "0.7", "100x40"),
        (("blur_plain", "--size", "blurred=100x61"), "1", "100x61"),
        (("blur_plain", "--size", "blurred=100x60@100x0"), "0.01", "100x60@100x0"),
        (("blur_plain", "--size", "blurred=100x600"), "0.5", "100x600"),
    ],
)
def test_too_little_to_compare_is_told_with_both_shapes(
    runner: Runner, blur_reference: Path, arguments: tuple[str, ...], least: str, shape: str
) -> None:
    result = runner("--kernel", *arguments, "--reference", blur_reference, "--least-common", least, "--time")
    assert (result.exit_code, result.one("error")["kind"]) == (4, "wrong_output")
    assert f"cannot be compared: the kernel computes {shape}, the reference 100x60" in result.one("error")["message"]
    assert result.all("timed") == []


def test_kernels_of_other_shapes_are_timed_in_turns(runner: Runner, blur_reference: Path) -> None:
    options = ("--reference", blur_reference, "--least-common", "0.5", "--time", "--max-repetitions", "5")
    for kernel, beside in (("blur_in_wide_strips", "blur_plain"), ("blur_plain", "blur_in_wide_strips")):
        timed = runner("--kernel", kernel, *options, "--beside", beside).one("timed")
        assert len(timed["repetitions_s"]) == len(timed["beside_s"]) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: b"", "ends too early"),
        (lambda content: content[:20], "ends too early"),
        (lambda content: content[:-1], "ends too early"),
        (lambda content: content + b"x", "continues after its last array"),
        (lambda content: b"X" + content[1:], "is not a raw array file"),
        (lambda content: content[:12] + b"\xff\xff\xff\xff" + content[16:], "is damaged: an array of"),
        (lambda content: content[:10] + b"\xff\xff" + content[12:], "is damaged: an array of"),
        (lambda content: content[:20] + b"\xff\xff\xff\xff" + content[24:], "is damaged: dimension 0"),
        (lambda content: content[:16] + b"\xff\xff\xff\x7f" + content[20:], "is damaged: dimension 0"),
        (lambda content: _with_shape(content, 0, 2**31 - 1, 0, 2**31 - 1), "is damaged: the array 'blurred"),
        (lambda content: _with_shape(content, 0, 100, 0, 2**31 - 1), "ends too early"),
        (lambda content: _with_shape(content, -(2**31), 2**31 - 1, 0, 60), "ends too early"),
        (lambda content: _with_shape(content, 0, 100, 0, 61), "ends too early"),
        (lambda content: _with_shape(content, 0, 100, 0, 59), "is not a raw array file"),
        (lambda content: content[:-4] + struct.pack("<i", -1), "is damaged: dimension 1"),
    ],
    ids=[
        "empty",
        "header",
        "cut",
        "longer",
        "magic",
        "dimensions",
        "name",
        "extent",
        "min",
        "overflow",
        "huge",
        "outside",
        "one row more",
        "one row less",
        "input",
    ],
)
def test_damaged_references(
    native_runner: Runner, tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    native_runner("--kernel", "blur_plain", "--write-reference", tmp_path / "ref")
    (tmp_path / "ref").write_bytes(change((tmp_path / "ref").read_bytes()))
    result = native_runner("--kernel", "blur_plain", "--reference", tmp_path / "ref", "--least-common", "0")
    assert result.exit_code == 5
    assert result.one("error")["kind"] == "io"
    assert message in result.one("error")["message"]


def _with_shape(content: bytes, *shape: int) -> bytes:
    return content[:16] + struct.pack("<4i", *shape) + content[32:]


def test_files_that_are_missing_or_cannot_be_written(native_runner: Runner, tmp_path: Path) -> None:
    missing = tmp_path / "nowhere" / "file"
    for option in ("--reference", "--write-reference"):
        result = native_runner("--kernel", "blur_plain", option, missing)
        assert result.exit_code == 5
        assert result.one("error")["kind"] == "io"
        assert str(missing) in result.one("error")["message"]
    (tmp_path / "folder").mkdir()
    result = native_runner("--kernel", "blur_plain", "--write-reference", tmp_path / "folder")
    assert result.exit_code == 5
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_input_files_that_do_not_fit(native_runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "in"
    option = ("--kernel", "blur_plain", "--input", f"image={path}")
    write_array_from((-1, -1), numpy.zeros((62, 102), "u2"), path)
    assert native_runner(*option).exit_code == 2
    write_input_file(numpy.zeros((1, 62, 102), "u1"), path)
    assert "holds uint8 in 3 dimensions" in native_runner(*option).one("error")["message"]
    write_array_from((-1, -1), numpy.zeros((62, 102), "u1"), path)
    assert "remove --size" in native_runner(*option, "--size", "image=3x3").one("error")["message"]
    path.write_bytes(path.read_bytes()[:-1])
    result = native_runner(*option)
    assert (result.exit_code, result.one("error")["kind"]) == (5, "io")
    # Too small for what the kernel reads: Halide says so.
    write_array_from((-1, -1), numpy.zeros((62, 101), "u1"), path)
    result = native_runner(*option)
    assert (result.exit_code, result.one("error")["kind"]) == (3, "halide")
    assert "image is accessed at 100" in result.one("error")["message"]


def test_a_failed_assertion_of_halide(runner: Runner) -> None:
    result = runner("--kernel", "requires", "--scalar", "divisor=0", "--time")
    assert result.exit_code == 3
    error = result.one("error")
    assert error["kind"] == "halide"
    assert "divisor is 0 but must be at least 1" in error["message"]
    assert result.all("done") == []


@pytest.mark.parametrize(("place", "side"), [(8, "behind"), (20, "behind"), (-1, "before"), (-60, "before")])
def test_a_kernel_that_writes_outside_its_output(runner: Runner, tmp_path: Path, place: int, side: str) -> None:
    write_input_file(numpy.array([3, place], dtype="i4"), tmp_path / "in")
    options = ("--input", f"place={tmp_path / 'in'}", "--write-reference", tmp_path / "ref", "--time")
    result = runner("--kernel", "overrun", *options)
    assert result.exit_code == 4
    assert result.one("error")["kind"] == "overrun"
    assert f"wrote {side} the memory of the buffer 'scattered" in result.one("error")["message"]
    assert not (tmp_path / "ref").exists()
    write_input_file(numpy.array([3, 7], dtype="i4"), tmp_path / "in")
    assert runner("--kernel", "overrun", *options[:4]).exit_code == 0


@pytest.mark.parametrize("size", ["2000000x200000", "2000000000x2000000000"])
def test_too_little_memory(native_runner: Runner, size: str) -> None:
    result = native_runner("--kernel", "blur_plain", "--size", f"blurred={size}")
    assert result.exit_code == 5
    assert result.one("error")["kind"] == "memory"
