"""Building and measuring on the same cores never meet, across threads and processes, and neither starves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from halide_autotune.devices.local import cores
from halide_autotune.devices.local.cores import CoreTurns
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.limited_process import ProcessLimits, ProcessOutcome, run_limited
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.process_state import PATIENCE_S, await_condition, await_other_text, state_of

PROJECT = Path(__file__).parents[4]
# Turns that each kind has to get; nobody is said to starve because this machine is slow.
ENOUGH = 10
# The same loop for threads and for processes: tells when it held the cores, until it is told to end.
LOOP = """
import sys, threading, time
from pathlib import Path
from halide_autotune.devices.local import cores
from halide_autotune.devices.local.cores import CoreTurns
cores.LONGEST_TURN_S = 0.02
turns, kind, ended = CoreTurns(Path(sys.argv[1])), sys.argv[2], threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
while not ended.is_set():
    with turns.measuring() if kind == "measure" else turns.building():
        begin = time.monotonic_ns()
        time.sleep(0.004)
        end = time.monotonic_ns()
    print(kind, begin, end)
print("done")
"""
Held = list[tuple[str, int, int]]


def loop_in_thread(folder: Path, kind: str, ended: threading.Event, held: Held) -> None:
    turns = CoreTurns(folder)
    while not ended.is_set():
        with turns.measuring() if kind == "measure" else turns.building():
            begin = time.monotonic_ns()
            time.sleep(0.004)
            held.append((kind, begin, time.monotonic_ns()))


def turn_of(line: str) -> tuple[str, int, int]:
    kind, begin, end = line.split()
    return kind, int(begin), int(end)


def end_of(process: subprocess.Popen[str]) -> list[str]:
    """Tell it to end; gives the lines that it says until then."""
    with process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        return process.stdout.read().splitlines()


def is_enough(held: Held) -> bool:
    """Everybody had turns, and builds have shared the cores."""
    built = sorted((begin, end) for kind, begin, end in held if kind == "build")
    shared = any(one[1] > other[0] for one, other in pairwise(built))
    return shared and min(sum(turn[0] == kind for turn in held) for kind in ("build", "measure")) >= ENOUGH


def test_a_measurement_is_alone_and_nobody_starves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "LONGEST_TURN_S", 0.02)
    ended = threading.Event()
    held: Held = []
    kinds = ["build", "build", "build", "build", "measure"]
    threads = [threading.Thread(target=loop_in_thread, args=(tmp_path, kind, ended, held)) for kind in kinds]
    processes = [
        subprocess.Popen(
            [sys.executable, "-u", "-c", LOOP, str(tmp_path), kind],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for kind in ("build", "measure")
    ]
    for thread in threads:
        thread.start()
    try:
        for process in processes:
            assert process.stdout is not None
            held.append(turn_of(process.stdout.readline()))
        await_condition(lambda: is_enough(list(held)))
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        said = [end_of(process) for process in processes]
    for lines in said:
        assert lines.pop() == "done"
        held += map(turn_of, lines)
    measured = [(begin, end) for kind, begin, end in held if kind == "measure"]
    for begin, end in measured:
        meeting = [other for other in held if other[1] < end and begin < other[2]]
        assert len(meeting) == 1, meeting


@pytest.mark.parametrize("kind", ["measuring", "building"])
def test_a_killed_process_lets_go(tmp_path: Path, kind: str) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom halide_autotune.devices.local.cores import CoreTurns\n"
        f"with CoreTurns(Path(sys.argv[1])).{kind}():\n    print('held', flush=True)\n    time.sleep(1000)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    waited: list[str] = []

    def measure() -> None:
        with CoreTurns(tmp_path).measuring():
            waited.append("in")

    thread = threading.Thread(target=measure)
    thread.start()
    thread.join(0.2)
    assert not waited
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    thread.join(PATIENCE_S)
    assert waited == ["in"]


@pytest.mark.parametrize("kind", ["measuring", "building"])
def test_a_stop_ends_the_wait_and_leaves_no_lock_behind(tmp_path: Path, kind: str) -> None:
    stop, went_on, waited = StopSignal(), threading.Event(), threading.Event()

    def wait() -> None:
        turns = CoreTurns(tmp_path)
        with turns.measuring(stop) if kind == "measuring" else turns.building(stop):
            went_on.set()
        with turns.measuring():
            waited.set()

    thread = threading.Thread(target=wait)
    with CoreTurns(tmp_path).measuring():
        thread.start()
        assert not went_on.wait(0.1), "it waits for its turn"
        stop.set()
        assert went_on.wait(PATIENCE_S)
        assert not waited.is_set(), "others keep theirs"
    thread.join(PATIENCE_S)
    assert waited.is_set()


def test_a_stop_that_never_comes_changes_nothing(tmp_path: Path) -> None:
    held = threading.Event()

    def measure() -> None:
        with CoreTurns(tmp_path).measuring(StopSignal()):
            held.set()

    thread = threading.Thread(target=measure)
    with CoreTurns(tmp_path).building(StopSignal()):
        thread.start()
        assert not held.wait(0.1)
    thread.join(PATIENCE_S)
    assert held.is_set()


COUNTS = """
import os, sys, time
open(sys.argv[1] + ".pid", "w").write(f"{os.getpid()}\\n")
while True:
    print(time.monotonic_ns(), file=open(sys.argv[1], "w"), flush=True)
"""


def test_a_build_stands_still_while_somebody_measures(tmp_path: Path) -> None:
    turns, stop, written = CoreTurns(tmp_path / "locks"), StopSignal(), tmp_path / "written"
    ended: list[ProcessOutcome] = []

    def build() -> None:
        with turns.building(stop) as turn:
            limits = ProcessLimits(1000.0, 2**30, pause=turn)
            ended.append(run_limited([sys.executable, "-c", COUNTS, str(written)], limits, stop=stop))

    thread = threading.Thread(target=build)
    thread.start()
    await_condition(written.exists, "the build")
    pid = int(written.with_name("written.pid").read_text())
    for _ in range(2):
        await_other_text(written, written.read_text())
        with turns.measuring():
            await_condition(lambda: state_of(pid) == "T", "the build's standing still")
            still = written.read_text()
            time.sleep(0.1)
            assert written.read_text() == still
            assert not ended
    await_other_text(written, still)
    stop.set()
    thread.join(PATIENCE_S)
    assert ended[0].stopped


def test_a_build_that_gave_way_has_the_cores_as_long(tmp_path: Path) -> None:
    turns, stop = CoreTurns(tmp_path), StopSignal()
    held = threading.Event()

    def measure() -> None:
        with turns.measuring(stop):
            held.set()

    with turns.building():
        with turns._lock:
            turns._builds_until_s = time.monotonic() + 1000.0
        thread = threading.Thread(target=measure)
        thread.start()
        assert not held.wait(0.1)
        stop.set()
        thread.join(PATIENCE_S)
    with turns.measuring():
        pass  # there is nobody to wait for


def test_turns_are_given_back_after_an_error(tmp_path: Path) -> None:
    turns = CoreTurns(tmp_path)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.measuring():
            _ = 1 / 0
        with pytest.raises(ZeroDivisionError), turns.building():
            _ = 1 / 0


def test_measurements_that_follow_each_other_share_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_KEPT_S", PATIENCE_S)
    turns, is_built = CoreTurns(tmp_path), threading.Event()

    def build() -> None:
        with CoreTurns(tmp_path).building():
            is_built.set()

    thread = threading.Thread(target=build)
    with turns.measuring():
        thread.start()
    for _ in range(3):
        with turns.measuring():
            assert not is_built.wait(0.02)
    monkeypatch.setattr(cores, "LONGEST_TURN_S", 0.0)
    with CoreTurns(tmp_path / "other").measuring():
        pass  # one that is over at once is not kept
    with CoreTurns(tmp_path / "other").building():
        pass
    monkeypatch.setattr(cores, "_KEPT_S", 0.0)
    with turns.measuring():
        pass
    thread.join(PATIENCE_S)
    assert is_built.is_set(), "a turn that nothing follows in is given back"


def test_a_folder_that_cannot_be_made_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DeviceError, match="cannot be made"):
        CoreTurns(tmp_path / "file" / "locks")


def test_who_joins_is_told_whether_others_take_turns_with_it(tmp_path: Path) -> None:
    with CoreTurns(tmp_path).joined() as before:
        with CoreTurns(tmp_path).joined() as second, CoreTurns(tmp_path).joined() as third:
            assert (before, second, third) == (False, True, True)
        with CoreTurns(tmp_path).measuring():  # who only measures is none of them
            pass
    with CoreTurns(tmp_path).joined() as alone:
        assert not alone
