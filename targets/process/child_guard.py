"""Child processes that do not outlive this one, however it ends: a small process of their own watches over them."""

from __future__ import annotations

import atexit
import contextlib
import functools
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

# It reads which process groups there are, and at the end of its input kills those that are left. The input ends with
# this process, a SIGKILL included. Its own session keeps the terminal's signals away.
_WATCHER = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


_LOCK = threading.Lock()


def start_child(arguments: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, and watch over its process group.

    Args:
        options: of `subprocess.Popen`.

    Raises:
        OSError: it cannot be started.
    """
    with _LOCK:
        _watcher()  # before the child, which would be alone while the watcher starts
    child = subprocess.Popen(list(arguments), start_new_session=True, **options)
    watch_over(child.pid)
    return child


def watch_over(group: int) -> None:
    """Have a process group killed when this process ends, even by SIGKILL, unless it is forgotten before.

    Args:
        group: the process ID of its leader, which has not been waited for.
    """
    _tell(b"+%d\n" % group)


def forget(group: int) -> None:
    """Call it once the leader has been waited for, since its number may then be another process's."""
    _tell(b"-%d\n" % group)


def _tell(line: bytes) -> None:
    with _LOCK:
        _watcher().tell(line)


class _Watcher:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )

    def tell(self, line: bytes) -> None:
        """Send a line, which is shorter than what a pipe writes at once."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # somebody has killed it; the limits of the children remain
            self._process.stdin.write(line)

    def close(self) -> None:
        """End it, and what it watches over."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@functools.cache
def _watcher() -> _Watcher:
    watcher = _Watcher()
    atexit.register(watcher.close)
    return watcher
