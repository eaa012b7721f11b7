"""Children end at their limits, with everything they started, and say how they ended."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from halide_autotune.targets.process import limited_process
from halide_autotune.targets.process.limited_process import (
    LOG_TAIL_BYTES,
    ProcessLimits,
    ProcessOutcome,
    await_child,
    run_limited,
)
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.process_state import act_when, await_condition, has_ended, state_of, under_a_time_limit

GIB = 2**30
GENEROUS = ProcessLimits(time_s=240.0, memory_bytes=4 * GIB)
# A child and a grandchild that wait for ever; their ids go to the file that is given.
FAMILY = """
import os, sys, time
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if grandchild:
        with open(sys.argv[1], "w") as file:
            file.write(f"{os.getpid()} {grandchild}\\n")
time.sleep(1000)
"""


# Starts a program as a user who may not raise limits, which root may not either without this capability (24).
WITHOUT_RAISING = """
import ctypes, os, sys
PR_CAPBSET_DROP = CAP_SYS_RESOURCE = 24
ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""
# Prints the limits of a child of a process with lower ones than are asked for.
LOWER_LIMITS = """
import resource, sys
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
kinds = (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_DATA)
for kind, highest in zip(kinds, (1800, 2**30, 2**32)):
    resource.setrlimit(kind, (highest, highest))
child = f"import resource; print([resource.getrlimit(kind) for kind in {kinds}])"
outcome = run_limited([sys.executable, "-c", child], ProcessLimits(time_s=9000.0, memory_bytes=2**33))
print(outcome.exit_code, outcome.log)
"""


def python(script: str, *arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", script, *map(str, arguments)]


def ids_in(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()]


def is_written(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


def test_lower_limits_of_the_user_stay() -> None:
    done = subprocess.run(python(WITHOUT_RAISING, LOWER_LIMITS), capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == f"0 [(1800, 1800), ({2**30}, {2**30}), ({2**32}, {2**32})]"


def test_the_time_limit_ends_the_child_with_its_descendants(tmp_path: Path) -> None:
    outcome = under_a_time_limit(
        lambda limit_s: run_limited(python(FAMILY, tmp_path / "ids"), ProcessLimits(limit_s, GIB)),
        lambda: is_written(tmp_path / "ids"),
    )
    assert outcome.timed_out and not outcome.stopped and not outcome.succeeded
    assert outcome.describe() == f"did not end within {outcome.limits.time_s:.0f} s"
    ids = ids_in(tmp_path / "ids")
    assert len(ids) == 2 and all(has_ended(pid) for pid in ids)


def test_the_stop_signal_ends_the_child_with_its_descendants(tmp_path: Path) -> None:
    stop = StopSignal()
    act_when(lambda: is_written(tmp_path / "ids"), stop.set)
    outcome = run_limited(python(FAMILY, tmp_path / "ids"), GENEROUS, stop=stop)
    assert outcome.stopped and not outcome.timed_out and not outcome.succeeded and not outcome.out_of_memory
    assert outcome.describe() == "was stopped"
    assert all(has_ended(pid) for pid in ids_in(tmp_path / "ids"))


def test_a_stop_signal_that_was_set_before_ends_the_child_at_once() -> None:
    stop = StopSignal()
    stop.set()
    stop.set()
    assert run_limited(["sleep", "1000"], GENEROUS, stop=stop).stopped


def test_what_a_child_left_in_the_background_ends_with_it() -> None:
    outcome = run_limited(["sh", "-c", "sleep 1000 & echo $!"], GENEROUS)
    assert outcome.succeeded
    assert has_ended(int(outcome.log))


def test_the_memory_limit_is_told_from_other_failures() -> None:
    # The limit comes after the start, on a busy machine later than the first line.
    limited = "import resource, time\nwhile resource.getrlimit(resource.RLIMIT_DATA)[0] < 0: time.sleep(0.01)\n"
    outcome = run_limited(python(f"{limited}x = bytearray(2 << 30)"), ProcessLimits(60.0, GIB // 2))
    assert outcome.exit_code == 1 and outcome.out_of_memory
    assert outcome.describe() == "ran out of its 0.5 GiB of memory"


def test_memory_below_the_limit_is_given() -> None:
    # Below this process's own peak the kernel cannot tell the child's.
    size_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + (300 << 20)
    outcome = run_limited(python(f"x = bytearray({size_bytes}); print(len(x))"), ProcessLimits(600.0, size_bytes + GIB))
    assert outcome.succeeded and outcome.peak_memory_bytes > size_bytes


def test_a_crash_below_a_large_parent_is_no_lack_of_memory() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    large = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    outcome = run_limited(python(code), ProcessLimits(60.0, large))
    assert not outcome.out_of_memory and outcome.describe() == "was ended by SIGSEGV"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGSEGV, "was ended by SIGSEGV"),
        (signal.SIGABRT, "was ended by SIGABRT"),
        (40, "was ended by signal 40"),
    ],
)
def test_the_signal_that_ended_it_is_named(number: int, words: str) -> None:
    outcome = run_limited(["sh", "-c", f"kill -{int(number)} $$"], GENEROUS)
    assert outcome.exit_code == -number
    assert outcome.describe() == words and not outcome.out_of_memory


def test_an_exit_code_is_told() -> None:
    outcome = run_limited(["sh", "-c", "echo before; exit 7"], GENEROUS)
    assert (outcome.exit_code, outcome.describe(), outcome.log) == (7, "exited with code 7", "before\n")


def test_of_a_long_log_the_end_is_kept_even_when_it_is_no_text() -> None:
    script = "import sys; sys.stdout.buffer.write(b'\\xff\\xc3' * 4_000_000 + b'the end'); sys.stderr.write('!')"
    log = run_limited(python(script), GENEROUS).log
    assert log.endswith("the end!")
    assert len(log) <= LOG_TAIL_BYTES


def test_it_reads_nothing_and_sees_only_the_environment_it_is_given(tmp_path: Path) -> None:
    script = (
        "import os, sys; print(sys.stdin.read() == '', sorted(k for k in os.environ if k != 'LC_CTYPE'), os.getcwd())"
    )
    outcome = run_limited(python(script), GENEROUS, environment={"ONLY": "this"}, folder=tmp_path)
    assert outcome.log.split(" ", 1) == ["True", f"['ONLY'] {tmp_path}\n"]


def test_it_runs_on_the_cores_it_is_given() -> None:
    import os

    core = min(os.sched_getaffinity(0))
    limits = ProcessLimits(60.0, GIB, frozenset({core}))
    # The cores are set right after the start: a child that asks at once may see the others.
    script = f"import os, time\nwhile os.sched_getaffinity(0) != {{{core}}}: time.sleep(0.01)\nprint('there')"
    assert run_limited(python(script), limits).log == "there\n"


def test_a_limit_of_a_hundred_days_is_a_limit() -> None:
    assert run_limited(["true"], ProcessLimits(100 * 86400.0, GIB)).succeeded


def test_a_program_that_is_missing_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        run_limited(["/no/such/program"], GENEROUS)


def test_many_at_once_from_threads_keep_their_own_ends() -> None:
    codes: dict[int, int] = {}

    def run(code: int) -> None:
        codes[code] = run_limited(["sh", "-c", f"exit {code}"], GENEROUS).exit_code

    threads = [threading.Thread(target=run, args=(code,)) for code in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {code: code for code in range(24)}


def test_a_death_by_signal_near_the_memory_limit_counts_as_out_of_memory() -> None:
    limits = ProcessLimits(10.0, 100)
    near = ProcessOutcome(-9, False, False, 1.0, 95, limits, "")
    far = ProcessOutcome(-9, False, False, 1.0, 50, limits, "")
    assert near.out_of_memory and not far.out_of_memory


class AskedPause:
    """A pause that is asked for until its cores are let go of; `give_way` does something meanwhile."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._asked = os.eventfd(1, os.EFD_NONBLOCK)
        self._act = act

    def fileno(self) -> int:
        return self._asked

    def give_way(self, stop: StopSignal | None) -> None:
        os.eventfd_read(self._asked)
        self._act()


@contextlib.contextmanager
def child() -> Iterator[tuple[int, int]]:
    """One that sleeps, in a group of its own: its process ID, and what is readable when it ends."""
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    ended = os.pidfd_open(process.pid)
    try:
        yield process.pid, ended
    finally:
        os.close(ended)
        process.kill()
        process.wait()


def test_a_paused_child_stands_still_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a pause is none of the child's."""
    at_s, states = [0.0], []
    monkeypatch.setattr(limited_process, "time", SimpleNamespace(monotonic=lambda: at_s[0]))

    def pause(pid: int) -> None:
        await_condition(lambda: state_of(pid) == "T", "the pause")
        states.append("paused")
        at_s[0] += 100.0

    with child() as (pid, ended):
        limits = ProcessLimits(50.0, 2**30, pause=AskedPause(lambda: pause(pid)))
        act_when(lambda: states and state_of(pid) != "T", lambda: os.kill(pid, signal.SIGKILL))
        assert await_child(pid, ended, limits, None) == (False, False, 100.0)
    assert states == ["paused"]


def test_a_stop_during_a_pause_ends_the_child() -> None:
    stop = StopSignal()
    limits = ProcessLimits(1000.0, 2**30, pause=AskedPause(stop.set))
    outcome = run_limited(["sleep", "1000"], limits, stop=stop)
    assert outcome.stopped and not outcome.timed_out and outcome.exit_code == -signal.SIGKILL
