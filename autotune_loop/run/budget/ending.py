"""The end of a run that is stopped, or that has used up its budget: what is under way is killed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.targets.process.stop_signal import StopSignal

_POLL_S = 0.2


class RunEnding:
    """Watches for the end of a run.

    Args:
        stop: set by the user.
        end: when the budget is over, with what a run may exceed it by.
        kill: kills what is under way; called again and again, because what waited for a core starts when what was
            before it is killed.

    Attributes:
        signal: set once the run is to end, by either.
    """

    def __init__(self, stop: StopSignal, end: Deadline, kill: Callable[[], None]) -> None:
        self.signal = StopSignal()
        self._stop = stop
        self._end = end
        self._kill = kill

    def has_come(self) -> bool:
        """Whether the run is to end at once."""
        return self._stop.is_set() or self.signal.is_set()

    def stop(self) -> None:
        """The user stops the run."""
        self._stop.set()

    def is_over_budget(self) -> bool:
        """Whether the run is to end at once, and not because the user has stopped it."""
        return self.signal.is_set() and not self._stop.is_set()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Kill what is under way, and what still starts, from the end of the run to the end of the context."""
        finished = threading.Event()

        def watch() -> None:
            while not finished.is_set():
                if self._stop.wait(min(_POLL_S, self._end.left_s)) or self._end.within(0.0):
                    self.signal.set()
                    self._kill()
                    finished.wait(_POLL_S)

        thread = threading.Thread(target=watch, daemon=True, name="ending-watch")
        thread.start()
        try:
            yield
        finally:
            finished.set()
            thread.join()
