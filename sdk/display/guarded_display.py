"""A display whose output may fail during a run."""

from __future__ import annotations

import contextlib

from autotune_loop.events import Event
from sdk.display.display import Display
from targets.errors import SdkError
from targets.process.stop_signal import StopSignal


class GuardedDisplay:
    """Passes events on to a display until it cannot write, then stops the run in order.

    Without this the error would be raised in whatever thread of the run reported an event.
    """

    def __init__(self, display: Display, stop: StopSignal) -> None:
        self._display = display
        self._stop = stop
        self._trouble: OSError | None = None

    def listen(self, event: Event) -> None:
        """See `Display.listen`; never raises."""
        if self._trouble is None:
            try:
                self._display.listen(event)
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
