"""The raw array files of the runner: inputs from NumPy arrays, and references read back.

One array, little-endian (`runner/array_file.c` reads and writes the same):

    8 bytes   "HLARRAY1"
    uint8     type code (0 int, 1 uint, 2 float, 4 bfloat), uint8 bits, uint16 length of the name
    uint32    dimensions
    int32     min, extent of every dimension
    bytes     the name
    bytes     the elements without gaps, dimension 0 fastest

An input file is one array; a reference file is one array per output, then one per input with the shape that the
reference was given of it. As in Halide's own Python binding,
Halide's dimension 0 is the last axis of a NumPy array: an array of shape (rows, columns) is a buffer of
columns x rows.
"""

from __future__ import annotations

import math
import os
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from targets.errors import UsageError

if TYPE_CHECKING:
    import numpy

MAGIC = b"HLARRAY1"
MAXIMUM_DIMENSIONS = 8

_START = struct.Struct("<8sBBHI")
_TYPE_CODES = {"i": 0, "u": 1, "f": 2}
_DTYPES = {
    (0, 8): "i1",
    (0, 16): "<i2",
    (0, 32): "<i4",
    (0, 64): "<i8",
    (1, 1): "?",
    (1, 8): "u1",
    (1, 16): "<u2",
    (1, 32): "<u4",
    (1, 64): "<u8",
    (2, 16): "<f2",
    (2, 32): "<f4",
    (2, 64): "<f8",
    (4, 16): "<u2",
}


@dataclass(frozen=True)
class RawArray:
    """One array of a file.

    Attributes:
        name: of the output; empty for an input.
        mins: the first coordinate of every Halide dimension, dimension 0 first.
        values: the elements; the last axis is dimension 0. bfloat16 comes as its bits (uint16).
    """

    name: str
    mins: tuple[int, ...]
    values: numpy.ndarray[Any, Any]


def write_input_file(values: numpy.ndarray[Any, Any], path: Path, mins: Sequence[int] | None = None) -> None:
    """Write an array as an input of the runner (`--input NAME=path`).

    Args:
        values: integers of 8 to 64 bits, booleans, or floats of 16 to 64 bits, up to 8 axes; the last axis is
            Halide's dimension 0.
        path: appears complete or not at all.
        mins: the first coordinate of every Halide dimension, dimension 0 first; zeros when None.

    Raises:
        UsageError: the type or the shape cannot be passed to a kernel, or the file cannot be written.
    """
    import numpy

    kind, bits = values.dtype.kind, values.dtype.itemsize * 8
    code, bits = (1, 1) if kind == "b" else (_TYPE_CODES.get(kind, -1), bits)
    if (code, bits) not in _DTYPES:
        raise UsageError(
            f"An input array for {path.name} has elements of type {values.dtype}.",
            next_step="Expected integers, booleans, or floats of 16, 32 or 64 bits.",
        )
    extents = values.shape[::-1]
    starts = tuple(mins) if mins is not None else (0,) * len(extents)
    if len(starts) != len(extents) or len(extents) > MAXIMUM_DIMENSIONS:
        raise UsageError(
            f"An input array for {path.name} has {len(extents)} axes and {len(starts)} first coordinates.",
            next_step=f"Expected as many of one as of the other, and at most {MAXIMUM_DIMENSIONS}.",
        )
    if any(not -(2**31) <= start <= 2**31 - 1 - extent for start, extent in zip(starts, extents, strict=True)):
        raise UsageError(f"The coordinates of an input array for {path.name} do not fit 32 bits.")
    header = _START.pack(MAGIC, code, bits, 0, len(extents))
    shape = b"".join(struct.pack("<ii", start, extent) for start, extent in zip(starts, extents, strict=True))
    dense = numpy.ascontiguousarray(values, dtype=_DTYPES[code, bits])
    _write_beside(path, header + shape, dense.tobytes())


def convert_npy_file(npy_path: Path, path: Path, mins: Sequence[int] | None = None) -> None:
    """Turn a `.npy` file into an input file of the runner; `path` and `mins` as for `write_input_file`.

    Raises:
        UsageError: the file is missing, is no `.npy` file, or holds objects or a type that Halide lacks.
    """
    import numpy

    try:
        values = numpy.load(npy_path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(
            f"{npy_path} cannot be read as a .npy file: {error}.",
            next_step="Expected one array of numbers, written by numpy.save.",
        ) from error
    if not isinstance(values, numpy.ndarray):
        raise UsageError(f"{npy_path} is not one array.", next_step="Expected a .npy file, written by numpy.save.")
    write_input_file(values, path, mins)


def read_arrays(path: Path) -> tuple[RawArray, ...]:
    """The arrays of an input or reference file.

    Raises:
        UsageError: the file cannot be read, or is damaged.
    """
    try:
        with open(path, "rb") as file:
            left_bytes = os.fstat(file.fileno()).st_size
            arrays = []
            while left_bytes:
                arrays.append(_read_array(file, left_bytes, path))
                left_bytes = os.fstat(file.fileno()).st_size - file.tell()
            return tuple(arrays)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error


def _read_array(file: BinaryIO, left_bytes: int, path: Path) -> RawArray:
    import numpy

    magic, code, bits, name_bytes, dimensions = _START.unpack(_exactly(file, _START.size, left_bytes, path))
    if magic != MAGIC or (code, bits) not in _DTYPES or dimensions > MAXIMUM_DIMENSIONS:
        raise UsageError(f"{path} is not a raw array file of the runner, or is damaged.")
    shape = struct.unpack(f"<{2 * dimensions}i", _exactly(file, 8 * dimensions, left_bytes, path))
    mins, extents = shape[0::2], shape[1::2]
    dtype = numpy.dtype(_DTYPES[code, bits])
    if any(extent < 0 for extent in extents):
        raise UsageError(f"{path} is damaged: an extent is negative.")
    name = _exactly(file, name_bytes, left_bytes, path).decode("utf-8", "replace")
    data = _exactly(file, math.prod(extents) * dtype.itemsize, left_bytes, path)
    return RawArray(name, mins, numpy.frombuffer(data, dtype).reshape(extents[::-1]))


def _exactly(file: BinaryIO, wanted_bytes: int, left_bytes: int, path: Path) -> bytes:
    # The size is looked at first: a damaged header must not make this ask for terabytes.
    data = file.read(wanted_bytes) if wanted_bytes <= left_bytes else b""
    if len(data) != wanted_bytes:
        raise UsageError(f"{path} is damaged: it ends too early.")
    return data


def _write_beside(path: Path, *parts: bytes) -> None:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for part in parts:
                    file.write(part)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}.") from error
