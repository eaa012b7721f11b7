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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halide_autotune.targets.build.array_source import is_array_file, read_array
from halide_autotune.targets.errors import UsageError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.raw_file import RawFile

if TYPE_CHECKING:
    import numpy

MAGIC = b"HLARRAY1"
MAXIMUM_DIMENSIONS = 8
FILE_START = struct.Struct("<8sBBHI")
# By NumPy's kinds of types; a truth value has one bit.
_TYPE_CODES = {"b": 1, "i": 0, "u": 1, "f": 2}


def write_input_file(values: numpy.ndarray[Any, Any], path: Path) -> None:
    """Write an array as an input file of the runner (`--input NAME=path`); its coordinates start at 0.

    Args:
        values: integers of 8 to 64 bits, booleans, or floats of 16 to 64 bits, up to 8 axes; the last axis is
            Halide's dimension 0.
        path: appears complete or not at all.

    Raises:
        UsageError: no kernel takes the type or the shape, or the file cannot be written.
    """
    import numpy

    kind, bits = values.dtype.kind, values.dtype.itemsize * 8
    if kind not in _TYPE_CODES or bits > 64:
        raise UsageError(
            f"The input array for {path.name} has elements of type {values.dtype}.",
            next_step="Give integers, booleans, or floats of 16, 32 or 64 bits.",
        )
    if values.ndim > MAXIMUM_DIMENSIONS:
        raise UsageError(
            f"The input array for {path.name} has {values.ndim} axes; at most {MAXIMUM_DIMENSIONS} are possible."
        )
    extents = values.shape[::-1]
    if any(extent >= 2**31 for extent in extents):
        raise UsageError(f"The coordinates of the input array for {path.name} do not fit into 32 bits.")
    header = FILE_START.pack(MAGIC, _TYPE_CODES[kind], 1 if kind == "b" else bits, 0, values.ndim)
    shape = b"".join(struct.pack("<ii", 0, extent) for extent in extents)
    dense = numpy.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    with os_error_as(UsageError, f"{path} cannot be written"):
        write_atomically(path, header + shape + dense.tobytes(), 0o600)


def convert_array_file(array_path: Path, path: Path) -> None:
    """Convert a `.npy` file, a picture or a raw file with its shape into an input file of the runner.

    Raises:
        UsageError: the file is missing, is none of these, or has objects or a type that Halide lacks.
    """
    write_input_file(read_array(array_path), path)


def array_shape(path: Path) -> tuple[int, ...]:
    """The extents of an array in any of the files that are inputs, Halide's dimension 0 first.

    Raises:
        UsageError: it is none of them.
    """
    raw = RawFile.of(path)
    if raw is not None:
        return raw.extents
    if is_array_file(path):
        return tuple(int(extent) for extent in read_array(path).shape[::-1])
    try:
        with open(path, "rb") as file:
            start = file.read(FILE_START.size)
            if len(start) < FILE_START.size or not start.startswith(MAGIC):
                raise ValueError("it says nothing of its shape")
            *_, dimensions = FILE_START.unpack(start)
            if dimensions > MAXIMUM_DIMENSIONS:
                raise ValueError(f"it has {dimensions} dimensions")
            return struct.unpack(f"<{2 * dimensions}i", file.read(8 * dimensions))[1::2]
    except (OSError, ValueError, struct.error) as error:
        raise UsageError(
            f"{path} cannot be read as an array: {error}.",
            next_step=f"Give a .npy file, a picture, or the extents of a raw file, such as {path.name}:1920x1080x3.",
        ) from error
