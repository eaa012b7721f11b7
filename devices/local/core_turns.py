"""Turns between building and measuring on the same cores, across threads, processes and users."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from targets.errors import DeviceError


class CoreTurns:
    """Builders share, a measurement is alone; neither waits for ever.

    Two lock files: everyone passes the first (the turnstile) to get at the second. A measurement holds the
    turnstile while it waits for the builds under way to end, so that no new build overtakes it. The kernel drops
    the locks of a killed process.
    """

    def __init__(self, folder: Path) -> None:
        self._turnstile = folder / "turnstile.lock"
        self._cores = folder / "cores.lock"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DeviceError(f"{folder}: the lock folder cannot be made: {error.strerror}.") from error

    @contextlib.contextmanager
    def building(self) -> Iterator[None]:
        """Hold the cores together with other builds."""
        with _locked(self._turnstile, fcntl.LOCK_EX):
            held = _lock(self._cores, fcntl.LOCK_SH)
        try:
            yield
        finally:
            os.close(held)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Hold the cores alone."""
        with _locked(self._turnstile, fcntl.LOCK_EX), _locked(self._cores, fcntl.LOCK_EX):
            yield


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    held = _lock(path, how)
    try:
        yield
    finally:
        os.close(held)


def _lock(path: Path, how: int) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(fd, how)
    except BaseException:
        os.close(fd)
        raise
    return fd
