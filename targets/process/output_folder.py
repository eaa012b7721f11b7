"""A folder for what a command makes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def output_folder(path: Path) -> Iterator[None]:
    """Make the folder; if the block fails, a new one that is still empty is deleted again.

    Raises:
        OSError: it cannot be made.
    """
    is_new = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise
