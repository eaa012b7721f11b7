"""Write a file so that readers see all of it or nothing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write to a temporary file in the same folder, flush it to disk, then rename it. A failure leaves nothing behind.

    Args:
        mode: the permissions of the new file; never wider while it is written.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
