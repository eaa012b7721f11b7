"""Nothing while a run goes on, then its result."""

from __future__ import annotations

import sys
import threading
import time

from autotune_loop.events import Event, Notice
from autotune_loop.run.result import TuneResult
from sdk.display.display import STOPPING_MESSAGE, FollowUp
from sdk.display.run_progress import RunProgress
from sdk.display.summary import print_summary


class QuietDisplay:
    """The summary alone on standard output; warnings, and that the run is stopping, on standard error."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress = RunProgress(time.monotonic)

    def listen(self, event: Event) -> None:
        """See `Display.listen`."""
        with self._lock:
            self._progress.add(event)
            if isinstance(event, Notice) and event.warning:
                sys.stderr.write(f"warning: {event.text}\n")

    def stopping(self) -> None:
        """See `Display.stopping`."""
        with self._lock:
            sys.stderr.write(f"{STOPPING_MESSAGE}\n")

    def close(self) -> None:
        """See `Display.close`."""

    def finish(self, result: TuneResult, follow_up: FollowUp) -> None:
        """See `Display.finish`."""
        print_summary(result, follow_up, self._progress.samples_per_minute)
