"""A place that is soon full."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_file_system(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mounts a file system of that size at a new folder; skips the test where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system can be mounted by root alone")
    try:
        yield folder
    finally:
        # Lazily: a test that failed may still hold a file of it.
        subprocess.run(["umount", "-l", str(folder)], check=True)
