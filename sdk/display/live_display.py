"""A run as one picture that is redrawn in place."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
import threading
import time
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.live import Live

from halide_autotune.autotune_loop.events import Event, Notice, RunStarted
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.sdk.display.display import STOPPING, Display, FollowUp
from halide_autotune.sdk.display.live_view import live_view
from halide_autotune.sdk.display.run_progress import RunProgress
from halide_autotune.sdk.display.summary import print_summary

# Shown until the run has its device and its folder, which takes seconds.
_STARTING = "starting: looking at the generator and the devices"
# Drawing takes a few milliseconds of a core that may be timing a schedule, so it is rare.
_FRAMES_PER_SECOND = 2


class LiveDisplay(Display):
    """Draws on a terminal from a thread of its own; events only change numbers.

    Until the run has begun, messages are lines: a password may be asked for below them. `close` removes the picture;
    the warnings and the summary stay on the screen.
    """

    def __init__(self, console: Console) -> None:
        self._lock = threading.Lock()
        self._console = console
        self._progress = RunProgress(time.monotonic)
        self._warnings: list[str] = []
        self._drawing = contextlib.ExitStack()
        self._live = Live(
            console=console,
            get_renderable=self._frame,
            refresh_per_second=_FRAMES_PER_SECOND,
            transient=True,
            vertical_overflow="crop",
        )

    def begin(self) -> None:
        """See `Display.begin`."""
        self._console.print(_STARTING, style="dim")

    def listen(self, event: Event) -> None:
        """See `Display.listen`."""
        with self._lock:
            self._progress.add(event)
            if isinstance(event, Notice) and self._progress.started is None and not event.warning:
                self._console.print(event.text, style="" if event == STOPPING else "dim")
            if isinstance(event, Notice) and event.warning:
                self._warnings.append(event.text)
        if isinstance(event, RunStarted):
            self._drawing.enter_context(no_keyboard_echo())
            self._drawing.enter_context(self._live)

    def close(self) -> None:
        """See `Display.close`; the warnings stay on the screen."""
        self._drawing.close()
        with self._lock:
            warnings, self._warnings = self._warnings, []
        for text in warnings:
            self._console.print(f"warning: {text}", style="yellow", markup=False)

    def finish(self, result: TuneResult, follow_up: FollowUp) -> None:
        """See `Display.finish`."""
        print_summary(result, follow_up, self._progress.samples_per_minute)

    def _frame(self) -> RenderableType:
        with self._lock:
            return live_view(self._progress, self._console.width, self._console.height)


@contextlib.contextmanager
def no_keyboard_echo() -> Iterator[None]:
    """Switch the terminal's echo off within the block; Ctrl-C still works.

    An echoed ^C or Enter would move the cursor, and the next frame would be drawn a line too low. Does nothing if
    standard input is not a terminal, or belongs to another job.
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
        with contextlib.suppress(OSError, termios.error):  # the terminal may have been closed
            termios.tcsetattr(keyboard, termios.TCSADRAIN, kept)
