"""Keeping what is typed from appearing in a picture that is redrawn in place."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from collections.abc import Iterator


@contextlib.contextmanager
def no_keyboard_echo() -> Iterator[None]:
    """Switch the terminal's echo off within the block; Ctrl-C still works.

    An echoed ^C or Enter moves the cursor, and the next frame would be drawn a line too low. Does nothing where
    standard input is no terminal, or belongs to another job just now.
    """
    try:
        keyboard = sys.stdin.fileno()
        if os.tcgetpgrp(keyboard) != os.getpgrp():
            raise OSError
        kept = termios.tcgetattr(keyboard)
        changed = [*kept]
        changed[3] &= ~termios.ECHO
        termios.tcsetattr(keyboard, termios.TCSANOW, changed)
    except (OSError, ValueError, termios.error):
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(keyboard, termios.TCSADRAIN, kept)
