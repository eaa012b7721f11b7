from __future__ import annotations

import io
from pathlib import Path

import imageio.v3
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from halide_autotune.targets.build.runner_input_file import MAGIC, array_shape, convert_array_file, write_input_file
from halide_autotune.targets.errors import UsageError
from tests.unit.targets.raw_arrays import read_arrays

DTYPES = ["?", "i1", "u1", "<i2", ">i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", ">f4", "<f8"]
SHAPES = arrays.array_shapes(min_dims=0, max_dims=8, min_side=0, max_side=3)
KEEP_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@KEEP_FOLDER
@given(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_what_is_written_is_read(tmp_path: Path, data: st.DataObject, dtype: str) -> None:
    values = data.draw(arrays.arrays(dtype, SHAPES))
    write_input_file(values, tmp_path / "in")
    (array,) = read_arrays(tmp_path / "in")
    assert array.mins == (0,) * values.ndim
    assert array.values.shape == values.shape
    assert array.values.dtype == values.dtype.newbyteorder("<")
    numpy.testing.assert_array_equal(array.values, values)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_the_last_axis_is_dimension_0(tmp_path: Path) -> None:
    write_input_file(numpy.array([[1, 2, 3], [4, 5, 6]], dtype="i2"), tmp_path / "in")
    shape = b"".join(number.to_bytes(4, "little") for number in (0, 3, 0, 2))
    data = b"".join(number.to_bytes(2, "little") for number in (1, 2, 3, 4, 5, 6))
    expected = MAGIC + bytes([0, 16, 0, 0]) + (2).to_bytes(4, "little") + shape + data
    assert (tmp_path / "in").read_bytes() == expected


def test_an_array_that_is_not_contiguous(tmp_path: Path) -> None:
    values = numpy.arange(24, dtype="u1").reshape(4, 6)[::2, ::-1].T
    write_input_file(values, tmp_path / "in")
    numpy.testing.assert_array_equal(read_arrays(tmp_path / "in")[0].values, values)


@pytest.mark.parametrize("dtype", ["c8", "U3", "O", "M8[s]"])
def test_types_that_halide_does_not_have(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(UsageError, match="has elements of type"):
        write_input_file(numpy.zeros(2, dtype), tmp_path / "in")
    assert not list(tmp_path.iterdir())


def test_shapes_that_a_kernel_cannot_take(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has 9 axes"):
        write_input_file(numpy.zeros((1,) * 9), tmp_path / "in")
    with pytest.raises(UsageError, match="do not fit into 32 bits"):
        write_input_file(numpy.broadcast_to(numpy.zeros(1), 2**31), tmp_path / "in")


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        write_input_file(numpy.zeros(2), tmp_path / "nowhere" / "in")


def test_converts_npy_files(tmp_path: Path) -> None:
    values = numpy.linspace(0, 1, 12, dtype="f4").reshape(3, 4)
    numpy.save(tmp_path / "values.npy", values)
    convert_array_file(tmp_path / "values.npy", tmp_path / "in")
    (array,) = read_arrays(tmp_path / "in")
    numpy.testing.assert_array_equal(array.values, values)


def _npy(value: object, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    numpy.save(file, numpy.asarray(value), allow_pickle=allow_pickle)
    return file.getvalue()


def _npz() -> bytes:
    file = io.BytesIO()
    numpy.savez(file, a=numpy.zeros(2))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"text", _npy([1.0])[:-3], _npy(numpy.array([{}], dtype=object), allow_pickle=True), _npz()],
    ids=["empty", "text", "cut", "objects", "archive"],
)
def test_what_is_no_npy_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.npy").write_bytes(content)
    with pytest.raises(UsageError, match=r"bad\.npy (cannot be read as a \.npy file|is not one array)"):
        convert_array_file(tmp_path / "bad.npy", tmp_path / "in")
    assert not (tmp_path / "in").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.npy"):
        convert_array_file(tmp_path / "missing.npy", tmp_path / "in")
    with pytest.raises(UsageError, match="missing cannot be read: No such file"):
        read_arrays(tmp_path / "missing")


@KEEP_FOLDER
@given(data=st.data())
def test_damage_is_an_error_or_another_array(tmp_path: Path, data: st.DataObject) -> None:
    write_input_file(numpy.arange(6, dtype="i2").reshape(2, 3), tmp_path / "in")
    content = bytearray((tmp_path / "in").read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[position:]
    else:
        content[position] = data.draw(st.integers(0, 255))
    (tmp_path / "in").write_bytes(content)
    try:
        arrays_read = read_arrays(tmp_path / "in")
    except UsageError as error:
        assert str(tmp_path / "in") in str(error)
    else:
        assert len(arrays_read) == (1 if content else 0)


@given(st.binary(max_size=80))
@KEEP_FOLDER
def test_any_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in").write_bytes(MAGIC + bytes([3, 64]) + content)
    with pytest.raises(UsageError, match="damaged"):
        read_arrays(tmp_path / "in")


@pytest.mark.parametrize("suffix", [".png", ".tiff", ".bmp"])
def test_a_picture_has_the_dimensions_x_y_and_channel(suffix: str, tmp_path: Path) -> None:
    pixels = numpy.arange(4 * 6 * 3, dtype=numpy.uint8).reshape(4, 6, 3)
    imageio.v3.imwrite(tmp_path / f"photo{suffix}", pixels, plugin="pillow")
    convert_array_file(tmp_path / f"photo{suffix}", tmp_path / "in")
    write_input_file(pixels.transpose(2, 0, 1), tmp_path / "expected")
    assert (tmp_path / "in").read_bytes() == (tmp_path / "expected").read_bytes()
    assert array_shape(tmp_path / f"photo{suffix}") == array_shape(tmp_path / "in") == (6, 4, 3)


def test_a_grey_picture_has_two_dimensions(tmp_path: Path) -> None:
    imageio.v3.imwrite(tmp_path / "grey.png", numpy.zeros((5, 7), numpy.uint8))
    assert array_shape(tmp_path / "grey.png") == (7, 5)


def test_what_is_no_picture_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"not a picture")
    with pytest.raises(UsageError, match=r"photo\.png cannot be read as a picture"):
        array_shape(tmp_path / "photo.png")


@pytest.mark.parametrize("kind", ["uint1", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64"])
def test_a_raw_file_has_dimension_0_fastest(kind: str, tmp_path: Path) -> None:
    values = (numpy.arange(24) % 2).reshape(2, 3, 4).astype("bool" if kind == "uint1" else kind)
    (tmp_path / "photo.raw").write_bytes(values.astype(values.dtype.newbyteorder("<")).tobytes())
    convert_array_file(tmp_path / f"photo.raw:4x3x2:{kind}", tmp_path / "in")
    write_input_file(values, tmp_path / "expected")
    assert (tmp_path / "in").read_bytes() == (tmp_path / "expected").read_bytes()
    assert array_shape(tmp_path / "photo.raw:4x3x2") == (4, 3, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("photo.raw:4x3:uint16", "photo.raw has 12 bytes, but 4x3 elements of uint16 take 24."),
        ("photo.raw:4x2:uint8", "photo.raw has 12 bytes, but 4x2 elements of uint8 take 8."),
        ("photo.raw:4x3", "The type of the elements in {}/photo.raw is not known: the generator could not be asked"),
        ("photo.raw:4x3:bfloat16", "photo.raw:4x3:bfloat16: no raw file has elements of type 'bfloat16'."),
        ("gone.raw:4x3:uint8", "gone.raw cannot be read: No such file"),
    ],
)
def test_a_raw_file_that_does_not_fit_is_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "photo.raw").write_bytes(bytes(12))
    with pytest.raises(UsageError) as caught:
        convert_array_file(tmp_path / text, tmp_path / "in")
    assert message.format(tmp_path) in caught.value.message and caught.value.next_step
    assert not (tmp_path / "in").exists()


def test_a_raw_file_without_extents_is_told_how_to_have_them(tmp_path: Path) -> None:
    (tmp_path / "photo.raw").write_bytes(bytes(12))
    with pytest.raises(UsageError) as caught:
        array_shape(tmp_path / "photo.raw")
    assert "says nothing of its shape" in caught.value.message
    assert "photo.raw:1920x1080x3" in caught.value.next_step
