"""Whether a program that failed had room for what it writes: few programs say so."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

# Less than what any of the files takes that a compiler or a generator writes.
_FULL_BELOW_BYTES = 2**20


def full_disk(folders: Iterable[Path]) -> str:
    """The sentence about the first of these folders whose file system is full; empty if none is."""
    for folder in folders:
        try:
            space = os.statvfs(folder)
        except OSError:
            continue
        if space.f_bavail * space.f_frsize < _FULL_BELOW_BYTES:
            return f"The disk of {folder} is full: free some space there."
    return ""
