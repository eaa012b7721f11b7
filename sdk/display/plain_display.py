"""A run as lines of a log, for pipes, files and terminals that cannot move the cursor; or its result alone."""

from __future__ import annotations

import sys
import threading
import time

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.sdk.display.display import STOPPING, Display, FollowUp
from halide_autotune.sdk.display.event_lines import event_lines
from halide_autotune.sdk.display.quantities import duration_text
from halide_autotune.sdk.display.run_progress import RunProgress
from halide_autotune.sdk.display.summary import print_summary

# As wide as '59 min 59 s'.
_CLOCK_WIDTH = 11


class PlainDisplay(Display):
    """Prints lines on standard output, each with the time since the start in front, then the summary.

    Args:
        verbose: as for `event_lines`.
        quiet: print only the summary; warnings, and that the run is stopping, go to standard error.
    """

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        self._quiet = quiet
        self._verbose = verbose
        self._lock = threading.Lock()
        self._progress = RunProgress(time.monotonic)

    def listen(self, event: Event) -> None:
        """See `Display.listen`."""
        with self._lock:
            self._progress.add(event)
            if not self._quiet:
                self._write(event_lines(event, self._progress, verbose=self._verbose))
            elif event == STOPPING or (isinstance(event, Notice) and event.warning):
                sys.stderr.writelines(f"{line}\n" for line in event_lines(event, self._progress))

    def finish(self, result: TuneResult, follow_up: FollowUp) -> None:
        """See `Display.finish`."""
        told = self._progress.started is not None and not self._quiet
        print_summary(result, follow_up, self._progress.samples_per_minute, clock_is_told=told)

    def _write(self, lines: list[str]) -> None:
        at = duration_text(self._progress.elapsed_s).rjust(_CLOCK_WIDTH)
        sys.stdout.write("".join(f"{at}  {line}\n" for line in lines))
        sys.stdout.flush()
