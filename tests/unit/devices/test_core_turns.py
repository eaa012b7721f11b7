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

from devices.core_turns import CoreTurns
from targets.errors import DeviceError

PROJECT = Path(__file__).parents[3]
DURATION_S = 1.5
# The same loop for threads and for processes: writes when it held the cores.
LOOP = """
import sys, time
from pathlib import Path
from devices.core_turns import CoreTurns
folder, kind, until_s = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
turns = CoreTurns(folder)
while time.monotonic() < until_s:
    with turns.measuring() if kind == "measure" else turns.building():
        begin = time.monotonic_ns()
        time.sleep(0.004)
        end = time.monotonic_ns()
    print(kind, begin, end)
"""


def loop_in_thread(folder: Path, kind: str, until_s: float, held: list[tuple[str, int, int]]) -> None:
    turns = CoreTurns(folder)
    while time.monotonic() < until_s:
        with turns.measuring() if kind == "measure" else turns.building():
            begin = time.monotonic_ns()
            time.sleep(0.004)
            held.append((kind, begin, time.monotonic_ns()))


def test_a_measurement_is_alone_and_nobody_starves(tmp_path: Path) -> None:
    until_s = time.monotonic() + DURATION_S
    held: list[tuple[str, int, int]] = []
    kinds = ["build", "build", "build", "build", "measure"]
    threads = [threading.Thread(target=loop_in_thread, args=(tmp_path, kind, until_s, held)) for kind in kinds]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", LOOP, str(tmp_path), kind, str(until_s)],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for kind in ("build", "measure")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        for line in process.communicate(timeout=60)[0].splitlines():
            kind, begin_text, end_text = line.split()
            held.append((kind, int(begin_text), int(end_text)))
        assert process.returncode == 0
    measured = [(begin, end) for kind, begin, end in held if kind == "measure"]
    built = sorted((begin, end) for kind, begin, end in held if kind == "build")
    for begin, end in measured:
        meeting = [other for other in held if other[1] < end and begin < other[2]]
        assert len(meeting) == 1, meeting
    assert len(measured) >= 10 and len(built) >= 10
    assert any(one[1] > other[0] for one, other in pairwise(built)), "builds never shared"


@pytest.mark.parametrize("kind", ["measuring", "building"])
def test_a_killed_process_lets_go(tmp_path: Path, kind: str) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom devices.core_turns import CoreTurns\n"
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
    thread.join(20)
    assert waited == ["in"]


def test_turns_are_given_back_after_an_error(tmp_path: Path) -> None:
    turns = CoreTurns(tmp_path)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.measuring():
            _ = 1 / 0
        with pytest.raises(ZeroDivisionError), turns.building():
            _ = 1 / 0


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DeviceError, match="the lock folder cannot be made"):
        CoreTurns(tmp_path / "file" / "locks")
