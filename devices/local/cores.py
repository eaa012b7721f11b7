"""The cores of this machine: which of them build and which measure, and turns where they do both."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from targets.errors import DeviceError, os_error_as
from targets.process.file_lock import file_lock
from targets.process.stop_signal import StopSignal


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


class CoreTurns:
    """Turns between building and measuring on the same cores, across threads, processes and users.

    Builds run together, a measurement runs alone, and neither waits for ever. Everyone passes a first lock (the
    turnstile) to reach the second. A measurement keeps the turnstile while it waits for the running builds, so that
    no new build overtakes it. The kernel releases the locks of a killed process.

    Raises:
        DeviceError: the folder of the locks cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._turnstile = folder / "turnstile.lock"
        self._cores = folder / "cores.lock"
        self._members = folder / "members.lock"
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
        with file_lock(self._turnstile, stop=stop), file_lock(self._cores, stop=stop):
            yield
