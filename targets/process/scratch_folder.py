"""Temporary folders that do not outlive their process for long, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from targets.process.file_lock import file_lock

_PREFIX = "sdk-scratch-"
# A younger one may not have its lock yet.
_LEAST_AGE_S = 600.0


@contextlib.contextmanager
def scratch_folder(purpose: str, place: Path | None = None) -> Iterator[Path]:
    """A new folder, deleted at the end.

    While it is in use it is locked: the first one that a process makes deletes what killed processes of this user have
    left there.

    Args:
        purpose: a word for its name.
        place: the folder that it is made in; None for the system's place for temporary files.

    Raises:
        OSError: it cannot be made.
    """
    parent = str(place or tempfile.gettempdir())
    _delete_left_over(parent)
    made = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{purpose}-", dir=parent)
    with made as text, file_lock(Path(text), fcntl.LOCK_SH):
        yield Path(text)


@functools.cache
def _delete_left_over(place: str) -> None:
    """Delete this user's folders that nobody has locked; once a process and place."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                _delete_unless_used(Path(entry.path))


def _delete_unless_used(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it is another user's, or gone
        status = folder.lstat()
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        if not is_ours or time.time() - status.st_ctime < _LEAST_AGE_S:
            return
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
