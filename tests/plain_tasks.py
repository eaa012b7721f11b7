"""Tasks for tests, which need nothing of a run. A worker of a test's farm imports them, too."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

from halide_autotune.autotune_loop.execute.tasks.task import BuildTask, MeasureTask
from halide_autotune.autotune_loop.execute.worker_state import WorkerState

MEETING = threading.Barrier(3)
_LIMIT_S = 240.0


@dataclass(frozen=True)
class Divide(BuildTask[int], kind="test_divide"):
    """A build that takes no time; it raises ZeroDivisionError where `by` is 0."""

    number: int
    by: int

    def run(self, state: WorkerState) -> int:
        return self.number // self.by


@dataclass(frozen=True)
class Doze(BuildTask[int], kind="test_doze"):
    """A build that takes a while, with a large answer; gives the process that it was done in."""

    time_s: float

    def run(self, state: WorkerState) -> int:
        time.sleep(self.time_s)
        self.output_folder.mkdir(parents=True, exist_ok=True)
        (self.output_folder / "large").write_bytes(bytes(2**20))
        return os.getpid()


@dataclass(frozen=True)
class Nap(MeasureTask[float], kind="test_nap"):
    """Holds the device for a while."""

    time_s: float

    def run(self, state: WorkerState) -> float:
        time.sleep(self.time_s)
        return self.time_s


@dataclass(frozen=True)
class Meet(MeasureTask[int], kind="test_meet"):
    """Ends when three of them are under way."""

    def run(self, state: WorkerState) -> int:
        return MEETING.wait(timeout=_LIMIT_S)
