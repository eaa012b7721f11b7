"""The `.lowered` files of a run: the loop nest of a schedule, as compressed JSON."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.lowering.loop_nest import LoopNest, parse_loop_nest, print_loop_nest

# A nest of many loops, unrolled by much.
_MOST_BYTES = 2**26


def pack_lowered(nest: LoopNest) -> bytes:
    """Return the content of a loop nest's file; equal nests give equal files."""
    return gzip.compress(print_loop_nest(nest).encode(), mtime=0)


def read_lowered(path: Path) -> LoopNest:
    """Read a loop nest.

    Raises:
        FileNotFoundError: there is none.
        GeneratorError: it is damaged, too large, or of another version.
    """
    return unpack_lowered(path.read_bytes(), path)


def unpack_lowered(content: bytes, name: str | Path) -> LoopNest:
    """Read a loop nest from the content of its file.

    Args:
        name: starts messages.

    Raises:
        GeneratorError: it is damaged, too large, or of another version.
    """
    try:
        with gzip.open(io.BytesIO(content)) as file:
            data = file.read(_MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise GeneratorError(f"{name}: the file is damaged ({error}).") from error
    if len(data) > _MOST_BYTES:
        raise GeneratorError(f"{name}: the loop nest has more than {_MOST_BYTES} bytes.")
    return parse_loop_nest(data.decode("utf-8", errors="replace"), name)
