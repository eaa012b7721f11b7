"""A lock that a killed process's last child still holds is waited for, one that a process holds is told."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from halide_autotune.targets.process import file_lock
from halide_autotune.targets.process.file_lock import lock_alone


def opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_CLOEXEC)


def test_a_lock_that_is_given_up_in_a_moment_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "_PATIENCE_S", 60.0)
    first, second = opened(tmp_path), opened(tmp_path)
    fcntl.flock(first, fcntl.LOCK_EX)
    giving_up = threading.Timer(0.1, os.close, [first])
    giving_up.start()
    try:
        lock_alone(second)
    finally:
        giving_up.join()
        os.close(second)


def test_a_lock_that_stays_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "_PATIENCE_S", 0.05)
    first, second = opened(tmp_path), opened(tmp_path)
    fcntl.flock(first, fcntl.LOCK_SH)
    try:
        with pytest.raises(BlockingIOError):
            lock_alone(second)
    finally:
        os.close(first)
        os.close(second)
