"""Arrays from the files that users have: `.npy` files, pictures, and raw files with their shape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.raw_file import RawFile

if TYPE_CHECKING:
    import numpy

_NPY = ".npy"
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
ARRAY_SUFFIXES = (_NPY, *PICTURE_SUFFIXES)
# By Halide's names of them; NumPy has all but one under the same.
_RAW_TYPES = {
    "uint1": "bool",
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("uint", "int") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"float{bits}" for bits in (16, 32, 64)},
}


def is_array_file(path: Path) -> bool:
    """Whether `read_array` reads such a file."""
    return path.suffix.lower() in ARRAY_SUFFIXES or RawFile.of(path) is not None


def read_array(path: Path) -> numpy.ndarray[Any, Any]:
    """Read an array; a picture's axes are (rows, columns), or (channels, rows, columns) for one with colours.

    So Halide's dimensions of a picture are x, y and the channel.

    Raises:
        UsageError: the file is missing, or is not one array of a kind that this function reads.
    """
    raw = RawFile.of(path)
    if raw is not None:
        return _read_raw(raw)
    return _read_npy(path) if path.suffix.lower() == _NPY else _read_picture(path)


def _read_npy(path: Path) -> numpy.ndarray[Any, Any]:
    import numpy

    try:
        values = numpy.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(
            f"{path} cannot be read as a .npy file: {error}.",
            next_step="Give one array of numbers, written by numpy.save.",
        ) from error
    if not isinstance(values, numpy.ndarray):
        raise UsageError(f"{path} is not one array.", next_step="Give a .npy file, written by numpy.save.")
    return values


def _read_picture(path: Path) -> numpy.ndarray[Any, Any]:
    # Halide's own Python package brings it.
    import imageio.v3
    import numpy

    try:
        values = numpy.asarray(imageio.v3.imread(path, plugin="pillow"))
    except Exception as error:  # each of its decoders has errors of its own
        raise UsageError(
            f"{path} cannot be read as a picture: {error}.",
            next_step=f"Give one of these: {', '.join(ARRAY_SUFFIXES)}.",
        ) from error
    if values.ndim not in (2, 3):
        raise UsageError(
            f"{path} is not one picture: its pixels have {values.ndim} axes.", next_step="Give one picture."
        )
    return numpy.moveaxis(values, -1, 0) if values.ndim == 3 else values


def _read_raw(raw: RawFile) -> numpy.ndarray[Any, Any]:
    import numpy

    values = numpy.frombuffer(_raw_bytes(raw), numpy.dtype(_raw_type(raw)).newbyteorder("<"))
    return values.reshape(raw.extents[::-1])


def check_raw_file(raw: RawFile) -> None:
    """Check that a raw file has as many bytes as its extents and its type take.

    Raises:
        UsageError: it has more or fewer, cannot be read, or has no type that a kernel takes from it.
    """
    import numpy

    element_bytes = numpy.dtype(_raw_type(raw)).itemsize
    try:
        size_bytes = raw.file.stat().st_size
    except OSError as error:
        raise _unreadable(raw, error) from error
    wanted_bytes = raw.element_count * element_bytes
    if size_bytes != wanted_bytes:
        raise UsageError(
            f"{raw.file} has {size_bytes} bytes, but {raw.extents_text} elements of {raw.type} take {wanted_bytes}.",
            next_step="Give the extents of the file, dimension 0 first, such as photo.raw:1920x1080x3.",
        )


def _raw_type(raw: RawFile) -> str:
    if raw.type in _RAW_TYPES:
        return _RAW_TYPES[raw.type]
    if not raw.type:
        raise UsageError(
            f"The type of the elements in {raw.file} is not known: the generator could not be asked for it.",
            next_step=f"Give it after the extents, such as {raw.file.name}:{raw.extents_text}:uint8.",
        )
    raise UsageError(
        f"{raw.path}: no raw file has elements of type {raw.type!r}.",
        next_step=f"It may be one of: {', '.join(_RAW_TYPES)}.",
    )


def _raw_bytes(raw: RawFile) -> bytes:
    check_raw_file(raw)
    try:
        return raw.file.read_bytes()
    except OSError as error:
        raise _unreadable(raw, error) from error


def _unreadable(raw: RawFile, error: OSError) -> UsageError:
    return UsageError(f"{raw.file} cannot be read: {error.strerror}.", next_step="Give a file that can be read.")
