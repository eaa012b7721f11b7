"""Writing a file so that nobody ever sees half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write beside the target, flush to disk, then move over it; after a failure nothing is left behind.

    Args:
        mode: the permissions of the new file; it never has more while it is written.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full.
    """
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
