"""Kernels that are timed run before ordinary processes, where the system allows it, and as usual where it does not."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.targets.conftest import Runner

pytestmark = pytest.mark.toolchain

TIMED = "--kernel blur_plain --time --machine --warm-up-s 0 --max-repetitions 6".split()
LOWEST = os.sched_get_priority_min(os.SCHED_RR)


def has_priority(runner: Runner, before: Callable[[], None]) -> bool:
    command = [str(runner.executable.path), *TIMED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True, preexec_fn=before)
    return next(event["has_priority"] for event in map(json.loads, done.stdout.splitlines()) if "hz" in event)


def is_allowed(before: Callable[[], None]) -> bool:
    command = ("chrt", "--rr", str(LOWEST), "true")
    keeps_time_for_others = int(Path("/proc/sys/kernel/sched_rt_runtime_us").read_text()) > 0
    tried = subprocess.run(command, capture_output=True, check=False, preexec_fn=before)
    return keeps_time_for_others and tried.returncode == 0


def allow() -> None:
    """Who has it already may keep it."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(LOWEST))


def forbid() -> None:
    resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))


def test_it_is_taken_where_that_is_allowed(native_runner: Runner) -> None:
    try:
        allowed = is_allowed(allow)
    except subprocess.SubprocessError:
        pytest.skip("this process may not take it")
    assert has_priority(native_runner, allow) == allowed


def test_kernels_are_timed_where_it_is_refused(native_runner: Runner) -> None:
    assert not is_allowed(forbid)
    assert not has_priority(native_runner, forbid)
