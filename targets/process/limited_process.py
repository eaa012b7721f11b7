"""Run a child process with a time limit and a memory limit; it is killed with all its children."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from halide_autotune.targets.process.child_guard import forget, start_child
from halide_autotune.targets.process.pause import Pause
from halide_autotune.targets.process.stop_signal import StopSignal

# A runner tells the times of thousands of repetitions in one line.
LOG_TAIL_BYTES = 256 * 1024
# The largest file that a child may write; what it prints is one. Outputs of kernels are, too.
LARGEST_FILE_BYTES = 4 * 2**30
_File = int | StopSignal | Pause
# poll() takes a C int.
_LONGEST_WAIT_MS = 2**31 - 1
# A process whose peak memory came this close to its limit probably died of it.
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
    """What a child process may use.

    Attributes:
        time_s: wall-clock seconds, without those in which it was paused; then it is killed with its children.
        memory_bytes: private writable memory (RLIMIT_DATA) of each of its processes.
        cores: the processor cores it may run on; None lets the kernel choose.
        pause: says when it is to stand still; None lets it run.
    """

    time_s: float
    memory_bytes: int
    cores: frozenset[int] | None = None
    pause: Pause | None = None


@dataclass(frozen=True)
class ProcessOutcome:
    """How a child process ended.

    Attributes:
        exit_code: its exit status, or minus the number of the signal that ended it.
        timed_out: it was killed at its time limit.
        stopped: it was killed because the run is stopping.
        duration_s: wall-clock seconds from start to end, without those in which it was paused.
        peak_memory_bytes: the largest resident set of the process; 0 if unknown.
        limits: those it ran under.
        log: the end of its stdout and stderr, interleaved.
    """

    exit_code: int
    timed_out: bool
    stopped: bool
    duration_s: float
    peak_memory_bytes: int
    limits: ProcessLimits
    log: str

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out and not self.stopped

    @property
    def out_of_memory(self) -> bool:
        """Whether it failed, and memory is the likely cause: it said so, or it died near its limit."""
        if self.succeeded or self.timed_out or self.stopped:
            return False
        if any(mark in self.log for mark in _OUT_OF_MEMORY_MARKS):
            return True
        return self.exit_code < 0 and self.peak_memory_bytes > _NEAR_LIMIT_SHARE * self.limits.memory_bytes

    def describe(self) -> str:
        """Return a phrase such as 'ran out of its 4.0 GiB of memory'."""
        if self.stopped:
            return "was stopped"
        if self.timed_out:
            return f"did not end within {self.limits.time_s:.0f} s"
        if self.out_of_memory:
            return f"ran out of its {self.limits.memory_bytes / 2**30:.1f} GiB of memory"
        if self.exit_code == -signal.SIGXFSZ:
            return f"printed, or wrote into a file, more than {LARGEST_FILE_BYTES / 2**30:.0f} GiB"
        if self.exit_code < 0:
            return f"was ended by {signal_name(-self.exit_code)}"
        return f"exited with code {self.exit_code}"


def signal_name(number: int) -> str:
    """Return a name such as 'SIGSEGV', or 'signal 40' for a real-time signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run_limited(
    arguments: Sequence[str],
    limits: ProcessLimits,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stop: StopSignal | None = None,
    stdin: IO[bytes] | None = None,
) -> ProcessOutcome:
    """Run a program in a session of its own and wait for it.

    The memory limit is set right after the start: no code runs between fork and exec, so this is safe in a threaded
    program. A killed parent takes the child with it.

    Args:
        stdin: an open file that it reads; None for nothing.

    Raises:
        OSError: the program cannot be started.
    """
    with tempfile.TemporaryFile() as log:
        started = time.monotonic()
        child = start_child(
            arguments,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
            cwd=folder,
        )
        ended = os.pidfd_open(child.pid)
        try:
            with contextlib.suppress(ProcessLookupError):  # it has already ended
                limit_process(child.pid, limits)
            timed_out, stopped, paused_s = await_child(child.pid, ended, limits, stop)
        finally:
            os.close(ended)
            kill_group(child.pid)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            forget(child.pid)
        return ProcessOutcome(
            exit_code=child.returncode,
            timed_out=timed_out,
            stopped=stopped,
            duration_s=time.monotonic() - started - paused_s,
            peak_memory_bytes=_own_peak_bytes(usage),
            limits=limits,
            log=read_tail(log),
        )


def limit_process(pid: int, limits: ProcessLimits) -> None:
    """Limit a process, or this one if `pid` is 0: all but its wall-clock time. Lower limits of the user's stay.

    Raises:
        ProcessLookupError: it has ended.
    """
    # Of CPU time so much that the wall-clock limit is always reached first, with any number of threads.
    cpu_s = int(limits.time_s * (os.cpu_count() or 1)) + 10
    if limits.cores is not None:
        os.sched_setaffinity(pid, limits.cores)
    _limit(pid, resource.RLIMIT_DATA, limits.memory_bytes, limits.memory_bytes)
    _limit(pid, resource.RLIMIT_CPU, cpu_s, cpu_s + 1)
    _limit(pid, resource.RLIMIT_CORE, 0, 0)
    _limit(pid, resource.RLIMIT_FSIZE, LARGEST_FILE_BYTES, LARGEST_FILE_BYTES)


def _limit(pid: int, what: int, soft: int, hard: int) -> None:
    _, highest = resource.prlimit(pid, what)
    if highest != resource.RLIM_INFINITY:  # only root may raise it
        soft, hard = min(soft, highest), min(hard, highest)
    resource.prlimit(pid, what, (soft, hard))


def _own_peak_bytes(usage: resource.struct_rusage) -> int:
    """Return a child's peak; 0 if it stayed below this process's, which the kernel counts from the fork on."""
    parent_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * 1024 if usage.ru_maxrss > parent_kib else 0


def await_child(pid: int, file: int, limits: ProcessLimits, stop: StopSignal | None) -> tuple[bool, bool, float]:
    """Wait until a file descriptor is readable, which tells of the end of a child that leads a process group.

    Returns:
        Whether its time is over, whether `stop` is set, and for how many seconds it was paused.
    """
    began_s, paused_s = time.monotonic(), 0.0
    while True:
        left_s = limits.time_s - (time.monotonic() - began_s - paused_s)
        ready = _readable([each for each in (file, stop, limits.pause) if each is not None], max(0.0, left_s))
        if file in ready or not ready:
            return not ready, False, paused_s
        if stop in ready or limits.pause is None:
            return False, True, paused_s
        paused_s += _paused(pid, limits.pause, stop)


def _paused(pid: int, pause: Pause, stop: StopSignal | None) -> float:
    """Have a process group stand still while it gives way; returns for how many seconds."""
    began_s = time.monotonic()
    _signal_group(pid, signal.SIGSTOP)
    try:
        pause.give_way(stop)
    finally:
        _signal_group(pid, signal.SIGCONT)
    return time.monotonic() - began_s


def await_readable(file: int, time_s: float, stop: StopSignal | None) -> tuple[bool, bool]:
    """Wait until a file descriptor is readable; return (timed out, stopped)."""
    ready = _readable([file] if stop is None else [file, stop], time_s)
    return not ready, bool(ready) and file not in ready


def _readable(files: Sequence[_File], time_s: float) -> list[_File]:
    """Wait until some can be read; returns those."""
    poller = select.poll()
    for file in files:
        poller.register(file, select.POLLIN)
    ready = {descriptor for descriptor, _ in poller.poll(min(time_s * 1000, _LONGEST_WAIT_MS))}
    return [file for file in files if (file if isinstance(file, int) else file.fileno()) in ready]


def kill_group(pid: int) -> None:
    """Send SIGKILL to the process group that `pid` leads, if it still exists."""
    _signal_group(pid, signal.SIGKILL)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or the number is another user's now
        os.killpg(pid, number)


def read_tail(log: IO[bytes]) -> str:
    """Return the last `LOG_TAIL_BYTES` of an open file as text."""
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - LOG_TAIL_BYTES))
    return log.read().decode("utf-8", "replace")
