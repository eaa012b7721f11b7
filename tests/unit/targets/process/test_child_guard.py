"""Children end with the process that started them, even if that is killed; those that have ended are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.targets.process.child_guard import forget, watch_over
from tests.process_state import await_file, has_ended, runs

# A child and a grandchild that wait for ever, in a group of their own; their IDs go to the file that is given.
_FAMILY = """
import os, sys, time
if os.fork() == 0:
    with open(sys.argv[1], "w") as file:
        file.write(f"{os.getppid()} {os.getpid()}\\n")
time.sleep(1000)
"""
_RUN_LIMITED = """
import sys
from halide_autotune.targets.process import child_guard
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
watch_over = child_guard.watch_over
def told(pid):
    watch_over(pid)
    open(sys.argv[2] + ".watched", "w").write(f"{pid}\\n")
child_guard.watch_over = told
run_limited([sys.executable, "-c", *sys.argv[1:]], ProcessLimits(1000.0, 2**30))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_and_its_own_end_with_the_process(how: signal.Signals, tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _RUN_LIMITED, _FAMILY, str(tmp_path / "ids")], stderr=subprocess.DEVNULL
    )
    ids = [int(word) for word in await_file(tmp_path / "ids").split()]
    assert int(await_file(tmp_path / "ids.watched")) == ids[0]
    assert all(runs(pid) for pid in ids)
    parent.send_signal(how)
    parent.wait()
    assert all(has_ended(pid) for pid in ids)


def test_the_watcher_runs_before_the_first_child(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys\n"
        "from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited\n"
        "started, begin = [], subprocess.Popen.__init__\n"
        "def told(self, arguments, **more):\n"
        "    started.append(arguments[-1])\n"
        "    begin(self, arguments, **more)\n"
        "subprocess.Popen.__init__ = told\n"
        "run_limited(['sleep', '0'], ProcessLimits(60.0, 2**30))\n"
        "print(started.index('0'), len(started))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["1", "2"]


def test_what_is_forgotten_stays(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys\n"
        "from halide_autotune.targets.process.child_guard import forget, watch_over\n"
        "kept, lost = (subprocess.Popen(['sleep', '999'], stdout=2, start_new_session=True) for _ in range(2))\n"
        "watch_over(kept.pid), watch_over(lost.pid), forget(kept.pid)\n"
        "print(kept.pid, lost.pid)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    kept, lost = map(int, done.stdout.split())
    try:
        assert has_ended(lost) and runs(kept)
    finally:
        os.kill(kept, signal.SIGKILL)


def test_it_can_be_told_of_what_has_ended() -> None:
    child = subprocess.Popen(["true"], start_new_session=True)
    watch_over(child.pid)
    child.wait()
    forget(child.pid)
