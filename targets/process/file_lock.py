"""The kernel's locks on files and folders: a killed process holds none."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from halide_autotune.targets.process.limited_process import await_readable
from halide_autotune.targets.process.stop_signal import StopSignal

_PATIENCE_S, _PAUSE_S = 3.0, 0.02


@contextlib.contextmanager
def file_lock(path: Path, how: int = fcntl.LOCK_EX, stop: StopSignal | None = None) -> Iterator[None]:
    """Hold the lock of a file, which is made if missing and stays, or of an existing folder.

    Args:
        how: with LOCK_NB only a moment is waited, as by `lock_alone`.
        stop: ends the wait when it is set; what is inside then runs without the lock, and has to look at it.

    Raises:
        BlockingIOError: another process holds it, and `how` has LOCK_NB.
        OSError: it cannot be opened or locked.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        if how & fcntl.LOCK_NB:
            _lock_in_a_moment(descriptor, how)
        elif stop is None:
            fcntl.flock(descriptor, how)
        else:
            _lock_unless_stopped(descriptor, how, stop)
        yield
    finally:
        os.close(descriptor)


def lock_alone(descriptor: int) -> None:
    """Lock an open file or folder for this process alone.

    A process that is killed while it starts another one leaves its locks to that one until it runs, which on a busy
    machine takes a moment: so long is waited.

    Raises:
        BlockingIOError: another process holds it.
    """
    _lock_in_a_moment(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_in_a_moment(descriptor: int, how: int) -> None:
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, how)
            return
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise
        time.sleep(_PAUSE_S)


def _lock_unless_stopped(descriptor: int, how: int, stop: StopSignal) -> None:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        return
    # Nothing but a signal ends `flock`, so another thread waits: for the same open file, by a descriptor of its own.
    waiting = os.dup(descriptor)
    locked = StopSignal()

    def wait() -> None:
        try:
            fcntl.flock(waiting, how)
        finally:
            # If the wait was ended meanwhile, this was the last descriptor, and the lock goes with it.
            os.close(waiting)
            locked.set()

    threading.Thread(target=wait, daemon=True, name="file-lock").start()
    await_readable(locked.fileno(), math.inf, stop)
