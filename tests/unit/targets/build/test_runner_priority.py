"""Kernels that are timed run before ordinary processes, where the system allows it, and as usual where it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.targets.conftest import Runner

pytestmark = pytest.mark.toolchain

TIMED = "--kernel blur_plain --time --machine --warm-up-s 0 --max-repetitions 6".split()
FORBIDDEN = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice")


def has_priority(runner: Runner, *prefix: str) -> bool:
    command = [*prefix, str(runner.executable.path), *TIMED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    return next(event["has_priority"] for event in map(json.loads, done.stdout.splitlines()) if "hz" in event)


def is_allowed() -> bool:
    """Whether this process, in a child, becomes a real-time one."""
    limit = Path("/proc/sys/kernel/sched_rt_runtime_us")
    real_time = ("chrt", "--rr", str(os.sched_get_priority_min(os.SCHED_RR)), "true")
    return int(limit.read_text()) > 0 and subprocess.run(real_time, capture_output=True, check=False).returncode == 0


def test_it_is_taken_where_that_is_allowed(native_runner: Runner) -> None:
    assert has_priority(native_runner) == is_allowed()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="there is nothing to take away")
def test_kernels_are_timed_where_it_is_not(native_runner: Runner) -> None:
    assert not has_priority(native_runner, *FORBIDDEN)
