"""How a limited child process ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass

# A process whose peak came this close to its limit and then died is taken to have died of it.
_NEAR_LIMIT_SHARE = 0.9
_OUT_OF_MEMORY_MARKS = (
    "std::bad_alloc",
    "MemoryError",
    "Cannot allocate memory",
    "out of memory",
    "Out of memory",
)


@dataclass(frozen=True)
class ProcessLimits:
    """What one child may use.

    Attributes:
        time_s: wall-clock seconds until it is killed with its children.
        memory_bytes: private writable memory (RLIMIT_DATA) of each of its processes.
        cores: the processor cores it may run on; None leaves the choice to the kernel.
    """

    time_s: float
    memory_bytes: int
    cores: frozenset[int] | None = None


@dataclass(frozen=True)
class ProcessOutcome:
    """What a child left behind.

    Attributes:
        exit_code: its exit status; minus the signal number when a signal ended it.
        timed_out: it was killed at its time limit.
        stopped: it was killed because the run is stopping.
        duration_s: wall-clock seconds from start to end.
        peak_memory_bytes: the largest resident set of the process; 0 when it is not known.
        memory_limit_bytes: the limit it ran under.
        log: the end of its stdout and stderr together.
    """

    exit_code: int
    timed_out: bool
    stopped: bool
    duration_s: float
    peak_memory_bytes: int
    memory_limit_bytes: int
    log: str

    @property
    def succeeded(self) -> bool:
        """True when it ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out and not self.stopped

    @property
    def out_of_memory(self) -> bool:
        """True when it failed and memory is the likely cause: it said so, or it died near its limit."""
        if self.succeeded or self.timed_out or self.stopped:
            return False
        if any(mark in self.log for mark in _OUT_OF_MEMORY_MARKS):
            return True
        return self.exit_code < 0 and self.peak_memory_bytes > _NEAR_LIMIT_SHARE * self.memory_limit_bytes

    def describe(self) -> str:
        """One phrase for a person, such as 'ran out of its 4.0 GiB of memory'."""
        if self.stopped:
            return "was stopped"
        if self.timed_out:
            return f"did not end within {self.duration_s:.0f} s"
        if self.out_of_memory:
            return f"ran out of its {self.memory_limit_bytes / 2**30:.1f} GiB of memory"
        if self.exit_code < 0:
            return f"was ended by {signal_name(-self.exit_code)}"
        return f"exited with code {self.exit_code}"


def signal_name(number: int) -> str:
    """'SIGSEGV', or 'signal 40' where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
