"""A run's database, read without leaving anything beside it: a live run may be writing there."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_PATIENCE_S = 10.0


def read_database(path: Path, read: Callable[[sqlite3.Connection], _T]) -> _T:
    """What `read` makes of the database; it is called again where a run has begun to write meanwhile.

    Raises:
        sqlite3.Error: the file is no database, is damaged, or cannot be read; besides whatever `read` raises.
    """
    before = _resting_state(path)
    if before is not None:
        # Nobody writes. SQLite would make two files for writers all the same, and not remove them.
        try:
            found = _read(path, "mode=ro&immutable=1", read)
        except Exception:
            if _resting_state(path) == before:
                raise
        else:
            if _resting_state(path) == before:
                return found
    try:
        return _read(path, "mode=ro", read)
    except sqlite3.OperationalError:
        # In a folder without write permission it is read as it is.
        return _read(path, "mode=ro&immutable=1", read)


def _resting_state(path: Path) -> tuple[int, int] | None:
    """Changes when something is written; None where a writer's log lies beside the file, or there is none."""
    if path.with_name(f"{path.name}-wal").exists():
        return None
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def _read(path: Path, mode: str, read: Callable[[sqlite3.Connection], _T]) -> _T:
    uri = f"{path.absolute().as_uri()}?{mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE_S)) as connection:
        return read(connection)
