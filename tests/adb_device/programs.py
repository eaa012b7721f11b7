"""Programs that an emulated device runs: found and ended, whatever they have become."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

_PATIENCE_S = 120.0


def kill_programs(root: Path) -> None:
    """SIGKILL to every process that was started with the environment of the device below `root`, or works below it.

    A program may have left its session and its parent; what it cannot easily leave are its environment and its folder.
    """
    deadline_s = time.monotonic() + _PATIENCE_S
    while found := running_programs(root):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"processes of {root} do not end: {found}")
        time.sleep(0.005)


def running_programs(root: Path) -> list[int]:
    """The ids of the device's processes, this one and zombies left out."""
    own = os.getpid()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != own and _belongs(pid, str(root))]


def _belongs(pid: int, root: str) -> bool:
    process = Path(f"/proc/{pid}")
    try:
        if (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
            return False
        places = (os.readlink(process / "cwd"), os.readlink(process / "exe"))
        if any(place == root or place.startswith(root + "/") for place in places):
            return True
        return f"ANDROID_ROOT={root}/".encode() in (process / "environ").read_bytes()
    except OSError:
        return False  # gone, or another user's
