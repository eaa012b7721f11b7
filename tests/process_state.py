"""Whether processes of another parent still run, have begun, or have written something."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

# Only so that a test ends: a machine that does other work may hold any process up for a while.
PATIENCE_S = 120.0
_LIMITS_S = (1.5, 6.0, 24.0, 96.0)
_LOOK_S = 0.02

_T = TypeVar("_T")


def has_ended(pid: int) -> bool:
    """True once `pid` is gone or a zombie; waits a while for it."""
    deadline_s = time.monotonic() + PATIENCE_S
    while runs(pid):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(_LOOK_S)
    return True


def await_file(path: Path) -> str:
    """The text of a file that another process writes, once it ends with a line break."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        if path.exists() and (text := path.read_text()).endswith("\n"):
            return text
        time.sleep(_LOOK_S)
    raise AssertionError(f"{path} was not written")


def await_condition(condition: Callable[[], object], what: str = "it") -> None:
    """Wait until it holds."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"{what} did not come true"
        time.sleep(_LOOK_S)


def await_other_text(path: Path, before: str) -> None:
    """Wait until a file that another process rewrites has another text than before, and not none."""
    await_condition(lambda: path.read_text() not in ("", before), f"another text of {path.name}")


def act_when(condition: Callable[[], object], act: Callable[[], object]) -> threading.Thread:
    """Start a thread that acts once the condition holds, and ends."""

    def wait() -> None:
        await_condition(condition)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def under_a_time_limit(run: Callable[[float], _T], has_begun: Callable[[], bool]) -> _T:
    """What `run` gives for a time limit that left its program the time to begin.

    The first limit is short. On a machine that is held up a program may not get as far within it as a test of its
    end needs, which is no fault: then it is tried with a longer one.
    """
    for limit_s in _LIMITS_S:
        outcome = run(limit_s)
        if has_begun():
            return outcome
    raise AssertionError("the program has never begun")


def runs(pid: int) -> bool:
    """Whether it is there and no zombie: those stay where nobody takes care of orphans."""
    return state_of(pid) not in ("", "Z", "X")


def state_of(pid: int) -> str:
    """The letter that the kernel has for the state of a process, such as T where it is stopped; empty if it is gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return status.rpartition(")")[2].split()[0]
