"""The cores of this machine: which of them build and which measure, and turns where they do both."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
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
        began_s: monotonic time.
    """

    locks: contextlib.ExitStack
    began_s: float


class BuildTurn:
    """The cores, shared with other builds: what is built can be paused for a measurement, and go on after it.

    Args:
        share: takes the cores, unless the stop signal ends the wait; what it returns lets go of them.
    """

    def __init__(self, share: Callable[[BuildTurn, StopSignal | None], contextlib.ExitStack]) -> None:
        self._share = share
        self._asked = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._locks = contextlib.ExitStack()

    def fileno(self) -> int:
        """See `Pause.fileno`."""
        return self._asked

    def give_way(self, stop: StopSignal | None) -> None:
        """See `Pause.give_way`."""
        self._locks.close()
        self._locks = self._share(self, stop)

    def ask(self) -> None:
        """Ask for a pause; what cannot be paused goes on to its end."""
        os.eventfd_write(self._asked, 1)

    def take_back(self) -> None:
        """Ask no longer."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._asked)

    def close(self) -> None:
        """Let go of the cores."""
        self._locks.close()
        os.close(self._asked)


class CoreTurns:
    """Turns between building and measuring on the same cores, across threads, processes and users.

    Builds run together, a measurement runs alone, and neither waits for ever. Everyone passes a first lock (the
    turnstile) to reach the second. A measurement keeps the turnstile while it waits for the running builds, so that
    no new build overtakes it. The kernel releases the locks of a killed process.

    A build of this process gives way to a measurement, if it can: its child stands still, and goes on afterwards. Then
    builds have the cores for as long as the measurement had them. Others are waited for: one may take seconds longer
    than the rest, and leave their cores idle. So measurements that follow each other at once share a turn, for a while.

    Raises:
        DeviceError: the folder of the locks cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._turnstile = folder / "turnstile.lock"
        self._cores = folder / "cores.lock"
        self._members = folder / "members.lock"
        self._kept: _Turn | None = None
        self._builds: set[BuildTurn] = set()
        # Of the two above.
        self._lock = threading.Lock()
        # Monotonic time until which builds have the cores.
        self._builds_until_s = 0.0
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
    def building(self, stop: StopSignal | None = None) -> Iterator[BuildTurn]:
        """Share the cores with other builds; once `stop` is set it waits no longer, and what is inside has to look."""
        turn = BuildTurn(self._share)
        try:
            turn.give_way(stop)
            yield turn
        finally:
            with self._lock:
                self._builds.discard(turn)
            turn.close()

    def _share(self, turn: BuildTurn, stop: StopSignal | None) -> contextlib.ExitStack:
        with contextlib.ExitStack() as held, file_lock(self._turnstile, stop=stop):
            held.enter_context(file_lock(self._cores, fcntl.LOCK_SH, stop))
            with self._lock:
                # Within the turnstile, so that the next measurement knows of it, and the last one asks no longer.
                turn.take_back()
                self._builds.add(turn)
            return held.pop_all()

    @contextlib.contextmanager
    def measuring(self, stop: StopSignal | None = None) -> Iterator[None]:
        """Have the cores alone; `stop` as for `building`."""
        turn = self._take_kept() or self._begin(stop)
        try:
            yield
        finally:
            # A turn that a stop has ended the wait for may be none.
            if (stop is not None and stop.is_set()) or not self._keep(turn):
                self._end(turn)

    def _begin(self, stop: StopSignal | None) -> _Turn:
        self._await_builds(stop)
        with contextlib.ExitStack() as locks:
            locks.enter_context(file_lock(self._turnstile, stop=stop))
            with self._lock:
                for build in self._builds:
                    build.ask()
            locks.enter_context(file_lock(self._cores, stop=stop))
            return _Turn(locks.pop_all(), time.monotonic())

    def _await_builds(self, stop: StopSignal | None) -> None:
        """Leave the cores to builds that gave way before, for as long as they did so."""
        left_s = self._builds_until_s - time.monotonic()
        with self._lock:
            has_builds = bool(self._builds)
        if has_builds and left_s > 0:
            (stop or threading.Event()).wait(left_s)

    def _end(self, turn: _Turn) -> None:
        now_s = time.monotonic()
        self._builds_until_s = now_s + (now_s - turn.began_s)
        turn.locks.close()

    def _take_kept(self) -> _Turn | None:
        with self._lock:
            kept, self._kept = self._kept, None
            return kept

    def _keep(self, turn: _Turn) -> bool:
        """Keep a turn for a moment; False if it has lasted long enough, or another one is kept."""
        with self._lock:
            if self._kept is not None or time.monotonic() >= turn.began_s + LONGEST_TURN_S:
                return False
            self._kept = kept = replace(turn)  # so that the timer of an earlier moment does not end this one
        timer = threading.Timer(_KEPT_S, self._end_kept, (kept,))
        timer.daemon = True
        timer.start()
        return True

    def _end_kept(self, turn: _Turn) -> None:
        with self._lock:
            if self._kept is not turn:
                return
            self._kept = None
        self._end(turn)
