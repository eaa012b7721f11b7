"""A display whose output may go away in the middle of a run."""

from __future__ import annotations

import contextlib
import threading

from autotune_loop.events import Event
from sdk.display.display import Display
from targets.errors import SdkError
from targets.process.stop_signal import StopSignal


class GuardedDisplay:
    """Passes events on to a display until it cannot write; then the run is asked to end, in order.

    Without this the error would come out of whatever thread of the run reported an event.
    """

    def __init__(self, display: Display, stop: StopSignal) -> None:
        self._display = display
        self._stop = stop
        self._lock = threading.Lock()
        self._trouble: OSError | None = None

    def listen(self, event: Event) -> None:
        """See `Display.listen`; never raises."""
        if self._trouble is None:
            try:
                self._display.listen(event)
            except OSError as error:
                self._fail(error)

    def stopping(self) -> None:
        """See `Display.stopping`; never raises."""
        if self._trouble is None:
            try:
                self._display.stopping()
            except OSError as error:
                self._fail(error)

    def close(self) -> None:
        """See `Display.close`; never raises."""
        with contextlib.suppress(OSError):
            self._display.close()

    def raise_trouble(self) -> None:
        """Raise what became of the output, if anything did.

        Raises:
            BrokenPipeError: its reader has gone.
            SdkError: it cannot be written for another reason.
        """
        if isinstance(self._trouble, BrokenPipeError):
            raise self._trouble
        if self._trouble is not None:
            raise SdkError(
                f"Standard output cannot be written: {self._trouble.strerror}; the run was ended.",
                next_step="Everything measured is saved: go on with --resume.",
            ) from self._trouble

    def _fail(self, error: OSError) -> None:
        with self._lock:
            self._trouble = self._trouble or error
        self._stop.set()
