"""What is typed during a live view."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.sdk.display.live_display import no_keyboard_echo

ROOT = Path(__file__).parents[4]
ON_ITS_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from halide_autotune.sdk.display.live_display import no_keyboard_echo
def echo():
    return bool(termios.tcgetattr(0)[3] & termios.ECHO)
before = echo()
with no_keyboard_echo():
    inside = echo()
print(before, inside, echo())
"""


def test_echo_is_off_within_and_on_again_after() -> None:
    master, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", ON_ITS_TERMINAL],
            cwd=ROOT,
            stdin=terminal,
            capture_output=True,
            text=True,
            check=True,
            start_new_session=True,
        )
    finally:
        os.close(terminal)
        os.close(master)
    assert done.stdout == "True False True\n"


def test_without_a_terminal_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "input").open("w+") as file:
        monkeypatch.setattr(sys, "stdin", file)
        with no_keyboard_echo():
            pass
