"""The cores of this machine: which of them build and which measure, and turns where they do both."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from halide_autotune.targets.errors import DeviceError, os_error_as
from halide_autotune.targets.process.file_lock import file_lock
from halide_autotune.targets.process.stop_signal import StopSignal

# So long a turn to measure may last, and so long it is kept for a measurement that follows.
LONGEST_TURN_S = 5.0
_KEPT_S = 0.05


@dataclass(frozen=True)
class CorePlan:
    """The cores of this machine, divided.

    Attributes:
        build: cores that compile and train.
        measure: cores that kernels on this machine are timed on; may be empty.
    """

    build: frozenset[int]
    measure: frozenset[int]

    @property
    def take_turns(self) -> bool:
        """Whether builds and measurements share cores, so that they must not run at the same time."""
        return bool(self.build & self.measure)


def plan_cores(usable: frozenset[int], measure_threads: int) -> CorePlan:
    """Divide `usable` so that measuring gets the cores it needs, and building the rest.

    On a machine too small for both, all cores do both, in turns.

    Args:
        measure_threads: threads of a kernel timed on this machine; 0 when the device is elsewhere.
    """
    if measure_threads == 0:
        return CorePlan(usable, frozenset())
    if measure_threads >= len(usable):
        return CorePlan(usable, usable)
    # The first cores take most interrupts and other users' work, so measure on the last ones.
    measure = frozenset(sorted(usable)[-measure_threads:])
    return CorePlan(usable - measure, measure)


@dataclass(frozen=True)
class _Turn:
    """The cores, had alone.

    Attributes:
        locks: held until they are closed.
        ends_s: monotonic time after which no further measurement begins.
    """

    locks: contextlib.ExitStack
    ends_s: float


class CoreTurns:
    """Turns between building and measuring on the same cores, across threads, processes and users.

    Builds run together, a measurement runs alone, and neither waits for ever. Everyone passes a first lock (the
    turnstile) to reach the second. A measurement keeps the turnstile while it waits for the running builds, so that
    no new build overtakes it. The kernel releases the locks of a killed process.

    Measurements that follow each other at once share a turn, for a while: each turn begins with a wait for the builds
    under way, of which one may take seconds longer than the others and leave their cores idle.

    Raises:
        DeviceError: the folder of the locks cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._turnstile = folder / "turnstile.lock"
        self._cores = folder / "cores.lock"
        self._members = folder / "members.lock"
        self._kept: _Turn | None = None
        self._kept_lock = threading.Lock()
        with os_error_as(DeviceError, f"The folder for locks, {folder}, cannot be made"):
            folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def joined(self) -> Iterator[bool]:
        """Be one of those who take turns for a while; yields whether there are others when it begins."""
        members = os.open(self._members, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(members, fcntl.LOCK_EX | fcntl.LOCK_NB)
                has_others = False
            except BlockingIOError:
                has_others = True
            fcntl.flock(members, fcntl.LOCK_SH)
            yield has_others
        finally:
            os.close(members)

    @contextlib.contextmanager
    def building(self, stop: StopSignal | None = None) -> Iterator[None]:
        """Share the cores with other builds; once `stop` is set it waits no longer, and what is inside has to look."""
        with contextlib.ExitStack() as held:
            with file_lock(self._turnstile, stop=stop):
                held.enter_context(file_lock(self._cores, fcntl.LOCK_SH, stop))
            yield

    @contextlib.contextmanager
    def measuring(self, stop: StopSignal | None = None) -> Iterator[None]:
        """Have the cores alone; `stop` as for `building`."""
        turn = self._take_kept() or _begin_turn((self._turnstile, self._cores), stop)
        try:
            yield
        finally:
            # A turn that a stop has ended the wait for may be none.
            if (stop is not None and stop.is_set()) or not self._keep(turn):
                turn.locks.close()

    def _take_kept(self) -> _Turn | None:
        with self._kept_lock:
            kept, self._kept = self._kept, None
            return kept

    def _keep(self, turn: _Turn) -> bool:
        """Keep a turn for a moment; False if it has lasted long enough, or another one is kept."""
        with self._kept_lock:
            if self._kept is not None or time.monotonic() >= turn.ends_s:
                return False
            self._kept = kept = replace(turn)  # so that the timer of an earlier moment does not end this one
        timer = threading.Timer(_KEPT_S, self._end_kept, (kept,))
        timer.daemon = True
        timer.start()
        return True

    def _end_kept(self, turn: _Turn) -> None:
        with self._kept_lock:
            if self._kept is not turn:
                return
            self._kept = None
        turn.locks.close()


def _begin_turn(files: tuple[Path, ...], stop: StopSignal | None) -> _Turn:
    with contextlib.ExitStack() as locks:
        for file in files:
            locks.enter_context(file_lock(file, stop=stop))
        return _Turn(locks.pop_all(), time.monotonic() + LONGEST_TURN_S)
