"""Input files of the runner: arrays in its raw format.

One array, little-endian (`runner/array_file.c` reads and writes the same):

    8 bytes   "HLARRAY1"
    uint8     type code (0 int, 1 uint, 2 float, 4 bfloat), uint8 bits, uint16 length of the name
    uint32    dimensions
    int32     min, extent of every dimension
    bytes     the name
    bytes     the elements without gaps, dimension 0 fastest

An input file is one array. A reference file is one array per output, then one per input with the shape that it had.
As in Halide's Python binding, dimension 0 is the last axis of a NumPy array: an array of shape (rows, columns) is a
buffer of columns x rows.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from targets.errors import UsageError
from targets.process.atomic_write import write_atomically

if TYPE_CHECKING:
    import numpy

MAGIC = b"HLARRAY1"
MAXIMUM_DIMENSIONS = 8
FILE_START = struct.Struct("<8sBBHI")
# NumPy's types by type code and bits; bfloat16 as its bits.
DTYPES = {
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
_TYPE_CODES = {"i": 0, "u": 1, "f": 2}


def write_input_file(values: numpy.ndarray[Any, Any], path: Path, mins: Sequence[int] | None = None) -> None:
    """Write an array as an input file of the runner (`--input NAME=path`).

    Args:
        values: integers of 8 to 64 bits, booleans, or floats of 16 to 64 bits, up to 8 axes; the last axis is
            Halide's dimension 0.
        path: appears complete or not at all.
        mins: the first coordinate of every Halide dimension, dimension 0 first; None is zeros.

    Raises:
        UsageError: no kernel takes the type or the shape, or the file cannot be written.
    """
    import numpy

    kind, bits = values.dtype.kind, values.dtype.itemsize * 8
    code, bits = (1, 1) if kind == "b" else (_TYPE_CODES.get(kind, -1), bits)
    if (code, bits) not in DTYPES:
        raise UsageError(
            f"The input array for {path.name} has elements of type {values.dtype}.",
            next_step="Give integers, booleans, or floats of 16, 32 or 64 bits.",
        )
    extents = values.shape[::-1]
    starts = tuple(mins) if mins is not None else (0,) * len(extents)
    if len(starts) != len(extents) or len(extents) > MAXIMUM_DIMENSIONS:
        raise UsageError(
            f"The input array for {path.name} has {len(extents)} axes and {len(starts)} first coordinates.",
            next_step=f"Give a first coordinate for each axis, and at most {MAXIMUM_DIMENSIONS} axes.",
        )
    if any(not -(2**31) <= start <= 2**31 - 1 - extent for start, extent in zip(starts, extents, strict=True)):
        raise UsageError(f"The coordinates of the input array for {path.name} do not fit into 32 bits.")
    header = FILE_START.pack(MAGIC, code, bits, 0, len(extents))
    shape = b"".join(struct.pack("<ii", start, extent) for start, extent in zip(starts, extents, strict=True))
    dense = numpy.ascontiguousarray(values, dtype=DTYPES[code, bits])
    try:
        write_atomically(path, header + shape + dense.tobytes(), 0o600)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}.") from error


def convert_npy_file(npy_path: Path, path: Path, mins: Sequence[int] | None = None) -> None:
    """Convert a `.npy` file into an input file of the runner; `path` and `mins` as for `write_input_file`.

    Raises:
        UsageError: the file is missing, is not a `.npy` file, or has objects or a type that Halide lacks.
    """
    import numpy

    try:
        values = numpy.load(npy_path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(
            f"{npy_path} cannot be read as a .npy file: {error}.",
            next_step="Give one array of numbers, written by numpy.save.",
        ) from error
    if not isinstance(values, numpy.ndarray):
        raise UsageError(f"{npy_path} is not one array.", next_step="Give a .npy file, written by numpy.save.")
    write_input_file(values, path, mins)
