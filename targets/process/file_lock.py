"""The kernel's locks on files and folders: a killed process holds none."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def file_lock(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the lock of a file, which is made if missing and stays, or of an existing folder.

    Raises:
        OSError: it cannot be opened or locked.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)
