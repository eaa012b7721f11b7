"""Nothing while a run goes on, then its result."""

from __future__ import annotations

import sys
import time

from autotune_loop.events import Event
from autotune_loop.result import TuneResult
from sdk.display.follow_up import FollowUp
from sdk.display.run_progress import RunProgress
from sdk.display.stopping_sentence import STOPPING_SENTENCE
from sdk.display.summary import print_summary


class QuietDisplay:
    """The summary alone on standard output; that a run is stopping goes to standard error."""

    def __init__(self) -> None:
        self._progress = RunProgress(time.monotonic)

    def listen(self, event: Event) -> None:
        """See `Display.listen`."""

    def stopping(self) -> None:
        """See `Display.stopping`."""
        sys.stderr.write(f"{STOPPING_SENTENCE}\n")

    def close(self) -> None:
        """See `Display.close`."""

    def finish(self, result: TuneResult, follow_up: FollowUp) -> None:
        """See `Display.finish`."""
        print_summary(result, follow_up, samples_per_minute=None)
