"""Reads and changes the runner's raw array files (targets/build/runner_input_file.py has their format)."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy

from halide_autotune.targets.build.runner_input_file import FILE_START, MAGIC, MAXIMUM_DIMENSIONS, write_input_file
from halide_autotune.targets.errors import UsageError

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


@dataclass(frozen=True)
class RawArray:
    """One array of a file.

    Attributes:
        name: of the output; empty for an input.
        mins: the first coordinate of every Halide dimension, dimension 0 first.
        values: the elements; the last axis is dimension 0. bfloat16 is read as its bits (uint16).
    """

    name: str
    mins: tuple[int, ...]
    values: numpy.ndarray[Any, Any]


def read_arrays(path: Path) -> tuple[RawArray, ...]:
    """Return the arrays of an input or reference file.

    Raises:
        UsageError: the file cannot be read, or is damaged.
    """
    try:
        with open(path, "rb") as file:
            size_bytes = path.stat().st_size
            arrays = []
            while file.tell() < size_bytes:
                arrays.append(_read_array(file, size_bytes - file.tell(), path))
            return tuple(arrays)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error


def write_array_from(mins: Sequence[int], values: numpy.ndarray[Any, Any], path: Path) -> None:
    """Write an input file whose coordinates start at `mins`, dimension 0 first."""
    write_input_file(values, path)
    content = bytearray(path.read_bytes())
    for dimension, least in enumerate(mins):
        struct.pack_into("<i", content, FILE_START.size + 8 * dimension, least)
    path.write_bytes(content)


def _read_array(file: BinaryIO, left_bytes: int, path: Path) -> RawArray:
    magic, code, bits, name_bytes, dimensions = FILE_START.unpack(_exactly(file, FILE_START.size, left_bytes, path))
    if magic != MAGIC or (code, bits) not in DTYPES or dimensions > MAXIMUM_DIMENSIONS:
        raise UsageError(f"{path} is not a raw array file of the runner, or is damaged.")
    shape = struct.unpack(f"<{2 * dimensions}i", _exactly(file, 8 * dimensions, left_bytes, path))
    mins, extents = shape[0::2], shape[1::2]
    dtype = numpy.dtype(DTYPES[code, bits])
    if any(extent < 0 for extent in extents):
        raise UsageError(f"{path} is damaged: an extent is negative.")
    name = _exactly(file, name_bytes, left_bytes, path).decode("utf-8", "replace")
    data = _exactly(file, math.prod(extents) * dtype.itemsize, left_bytes, path)
    return RawArray(name, mins, numpy.frombuffer(data, dtype).reshape(extents[::-1]))


def _exactly(file: BinaryIO, wanted_bytes: int, left_bytes: int, path: Path) -> bytes:
    # A damaged header must not make this ask for terabytes.
    data = file.read(wanted_bytes) if wanted_bytes <= left_bytes else b""
    if len(data) != wanted_bytes:
        raise UsageError(f"{path} is damaged: it ends too early.")
    return data
