"""Arrays from the files that users have: `.npy` files and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from targets.errors import UsageError

if TYPE_CHECKING:
    import numpy

_NPY = ".npy"
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
ARRAY_SUFFIXES = (_NPY, *PICTURE_SUFFIXES)


def read_array(path: Path) -> numpy.ndarray[Any, Any]:
    """Read an array; a picture's axes are (rows, columns), or (channels, rows, columns) for one with colours.

    So Halide's dimensions of a picture are x, y and the channel.

    Raises:
        UsageError: the file is missing, or is not one array of a kind that this function reads.
    """
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
