"""Whether a process of another parent still runs."""

from __future__ import annotations

import time
from pathlib import Path

_PATIENCE_S = 10.0


def has_ended(pid: int) -> bool:
    """True once `pid` is gone or a zombie; waits a while for it."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while _runs(pid):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


def await_file(path: Path) -> str:
    """The text of a file that another process writes, once it ends with a line break."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        if path.exists() and (text := path.read_text()).endswith("\n"):
            return text
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"
