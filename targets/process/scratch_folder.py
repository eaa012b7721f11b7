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

from halide_autotune.targets.process.file_lock import file_lock

_PREFIX = "sdk-scratch-"
# What it is called until it has its lock.
_NEW_PREFIX = f"{_PREFIX}new-"
# A younger one of these may be about to get it.
_LEAST_AGE_S = 600.0


@contextlib.contextmanager
def scratch_folder(purpose: str, place: Path | None = None) -> Iterator[Path]:
    """A new folder, deleted at the end.

    It is locked as long as it has its name: the first one that a process makes deletes what killed processes of this
    user have left there.

    Args:
        purpose: a word for its name.
        place: the folder that it is made in; None for the system's place for temporary files.

    Raises:
        OSError: it cannot be made.
    """
    parent = str(place or tempfile.gettempdir())
    _delete_left_over(parent)
    new = Path(tempfile.mkdtemp(prefix=_NEW_PREFIX, dir=parent))
    with file_lock(new, fcntl.LOCK_SH):
        folder = new.rename(new.with_name(new.name.replace(_NEW_PREFIX, f"{_PREFIX}{purpose}-")))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


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
        is_young = folder.name.startswith(_NEW_PREFIX) and time.time() - status.st_ctime < _LEAST_AGE_S
        if not is_ours or is_young:
            return
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
