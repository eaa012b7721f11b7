"""Write a file so that readers see all of it or nothing."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

# The names that `mkstemp` makes of the prefix below.
_UNFINISHED = re.compile(r"\..+\.[a-z0-9_]{8}", re.ASCII)


def write_atomically(path: Path, data: bytes, mode: int = 0o644, *, flushes: bool = True) -> None:
    """Write to a temporary file in the same folder, flush it to disk, then rename it. A failure leaves nothing behind.

    Args:
        mode: the permissions of the new file; never wider while it is written.
        flushes: to disk, which takes milliseconds; else a power cut may leave an empty file.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if flushes:
                os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def remove_unfinished(folder: Path) -> None:
    """Delete what processes killed in `write_atomically` have left in a folder and below it; nobody may write there.

    Raises:
        OSError: the folder cannot be changed.
    """
    for path in folder.rglob(".*"):
        if _UNFINISHED.fullmatch(path.name) and path.is_file():
            path.unlink()
