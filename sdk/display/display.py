"""What shows a run, the choice of what does, and what happens when it cannot be written any more."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Protocol

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.targets.errors import SdkError, UsageError
from halide_autotune.targets.process.stop_signal import StopSignal

# Shown when the user has asked the run to end.
STOPPING = Notice("stopping; press Ctrl-C again to stop at once")
# Command lines for a shell, by what they are for.
FollowUp = Mapping[str, str]
RESUME_IT = "resume it"


class Display(Protocol):
    """Shows a run as it happens, then its result."""

    def begin(self) -> None:
        """Show at once that the run starts, before what takes long; called once, before all else."""
        return  # logs and programs need no such thing, and inherit this

    def listen(self, event: Event) -> None:
        """Show one event; called from several threads."""

    def close(self) -> None:
        """Give the terminal back, if it was taken, so that other output prints cleanly; may be called again."""
        return  # a display that takes nothing inherits this

    def finish(self, result: TuneResult, follow_up: FollowUp) -> None:
        """Show the result; called once, after `close`."""


def choose_display(*, as_json: bool, quiet: bool, plain: bool, verbose: bool = False) -> Display:
    """Return the display for one run: JSON lines, the result alone, plain lines, or the live view.

    Raises:
        UsageError: two options exclude each other.
    """
    if (plain or verbose) and (as_json or quiet):
        one, other = "--plain" if plain else "--verbose", "--json" if as_json else "--quiet"
        raise UsageError(f"{one} and {other} exclude each other.", next_step="Leave one of them out.")
    if as_json:
        from halide_autotune.sdk.display.json_display import JsonDisplay

        return JsonDisplay(result_only=quiet)
    if not (plain or quiet or verbose) and sys.stdout.isatty():
        from halide_autotune.sdk.display.live_display import LiveDisplay
        from halide_autotune.sdk.output import make_console

        console = make_console()
        if not console.is_dumb_terminal:
            return LiveDisplay(console)
    from halide_autotune.sdk.display.plain_display import PlainDisplay

    return PlainDisplay(quiet=quiet, verbose=verbose)


class GuardedDisplay:
    """Passes events on to a display until it cannot write, then stops the run in order.

    Without this the error would be raised in whatever thread of the run reported an event.
    """

    def __init__(self, display: Display, stop: StopSignal) -> None:
        self._display = display
        self._stop = stop
        self._trouble: OSError | None = None

    def begin(self) -> None:
        """See `Display.begin`; never raises."""
        self._unless_in_trouble(self._display.begin)

    def listen(self, event: Event) -> None:
        """See `Display.listen`; never raises."""
        self._unless_in_trouble(lambda: self._display.listen(event))

    def _unless_in_trouble(self, show: Callable[[], None]) -> None:
        if self._trouble is None:
            try:
                show()
            except OSError as error:
                self._trouble = error
                self._stop.set()

    def close(self) -> None:
        """See `Display.close`; never raises."""
        with contextlib.suppress(OSError):
            self._display.close()

    def raise_trouble(self) -> None:
        """Raise the error of the output, if there was one.

        Raises:
            BrokenPipeError: its reader is gone.
            SdkError: it cannot be written for another reason.
        """
        if isinstance(self._trouble, BrokenPipeError):
            raise self._trouble
        if self._trouble is not None:
            raise SdkError(
                f"Standard output cannot be written: {self._trouble.strerror}. The run was stopped.",
                next_step="Everything measured is saved: continue with --resume.",
            ) from self._trouble
