"""Outputs are compared many elements at once: with the same result as one after the other."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.targets.build.executable import RUNNER_DIR
from halide_autotune.targets.halide_install import HalideInstall

pytestmark = pytest.mark.toolchain

INTEGER, UNSIGNED, FLOAT, BFLOAT = 0, 1, 2, 4
# Zeros, the smallest and the largest, infinities, NaN, ones.
SPECIAL = (0x00000000, 0x80000000, 0x00000001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000)
SINGLES = st.sampled_from(SPECIAL) | st.integers(0, 2**32 - 1)
# The other element: equal, some units in the last place away, or any.
PAIRS = st.tuples(SINGLES, st.just(0) | st.integers(-4, 4)) | st.tuples(SINGLES, st.integers(0, 2**32 - 1))


@pytest.fixture(scope="module")
def rows(halide: HalideInstall, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("rows") / "rows.so"
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-O2"]
    sources = [str(Path(__file__).with_name("compared_rows.c")), str(RUNNER_DIR / "memory.c")]
    includes = [f"-I{RUNNER_DIR}", f"-I{halide.include_dir}"]
    subprocess.run(["gcc", *flags, *includes, "-shared", "-fPIC", *sources, "-o", str(library)], check=True)
    # The other files of the runner are not there: nothing of them is called.
    loaded = ctypes.CDLL(str(library), mode=os.RTLD_LAZY)
    loaded.largest.restype = ctypes.c_double
    loaded.largest.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64]
    loaded.agrees.restype = ctypes.c_bool
    loaded.agrees.argtypes = [
        ctypes.c_bool,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_int64,
        ctypes.c_double,
        ctypes.c_double,
        ctypes.POINTER(ctypes.c_double),
    ]
    return loaded


@pytest.mark.parametrize(
    ("code", "dtype"),
    [*((INTEGER, f"i{n}") for n in (1, 2, 4, 8)), *((UNSIGNED, f"u{n}") for n in (1, 2, 4, 8))],
)
@given(data=st.binary(max_size=400))
def test_the_largest_integer_is_the_one_farthest_from_zero(
    rows: ctypes.CDLL, code: int, dtype: str, data: bytes
) -> None:
    values = numpy.frombuffer(data[: len(data) // 8 * 8], dtype)
    expected = max((abs(int(value)) for value in values), default=0)
    assert rows.largest(code, 8 * values.itemsize, values.tobytes(), values.size) == float(expected)


@pytest.mark.parametrize(
    ("code", "bits", "dtype"), [(FLOAT, 16, "f2"), (FLOAT, 32, "f4"), (FLOAT, 64, "f8"), (BFLOAT, 16, "u2")]
)
@given(data=st.binary(max_size=400), place=st.integers(0, 40), special=st.sampled_from(SPECIAL))
def test_the_largest_float_is_the_largest_finite_one(
    rows: ctypes.CDLL, code: int, bits: int, dtype: str, data: bytes, place: int, special: int
) -> None:
    data = data[:place] + special.to_bytes(4, "little") + data[place:]
    values = numpy.frombuffer(data[: len(data) // 8 * 8], dtype)
    wide = (values.astype("u4") << 16).view("f4") if code == BFLOAT else values
    numbers = [abs(float(value)) for value in wide if numpy.isfinite(value)]
    assert rows.largest(code, bits, values.tobytes(), values.size) == max(numbers, default=0.0)


@given(
    pairs=st.lists(PAIRS, max_size=60),
    relative=st.sampled_from([0.0, 1e-7, 1e-3, 1.0]),
    absolute=st.sampled_from([0.0, 1e-30, 1.0, 1e30]),
)
def test_a_row_agrees_if_all_its_elements_do(
    rows: ctypes.CDLL, pairs: list[tuple[int, int]], relative: float, absolute: float
) -> None:
    expected = numpy.array([one for one, _ in pairs], "u4")
    # Near ones are so many units in the last place away; wide numbers stand for themselves.
    others = [(one + other) % 2**32 if abs(other) <= 4 else other for one, other in pairs]
    actual = numpy.array(others, "u4")

    def told(at_once: bool) -> tuple[bool, float]:
        error = ctypes.c_double()
        both = expected.tobytes(), actual.tobytes()
        return rows.agrees(at_once, *both, len(pairs), relative, absolute, ctypes.byref(error)), error.value

    (at_once, error), (one_by_one, exact) = told(True), told(False)
    assert at_once is one_by_one
    with numpy.errstate(over="ignore"):
        assert error == float(numpy.float32(exact)), "as a float"
