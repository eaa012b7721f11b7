"""Writing a file so that nobody ever sees half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(file: Path, text: str, mode: int) -> None:
    """Write beside the file, flush to disk, then move over it; after a failure nothing is left behind.

    Args:
        mode: the permissions of the new file; it never has more while it is written.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full.
    """
    handle, beside = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(text.encode("utf-8"))
            opened.flush()
            os.fsync(opened.fileno())
        os.chmod(beside, mode)
        os.replace(beside, file)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
