"""How far one timing beside a yardstick is off while others compute: with and without the priority that kernels take.

    python -m benchmarks.loaded_ratios separable_filter corner_detector --output ratios.json

Random Adams2019 schedules of an example are each timed beside the first one: on the machine as it is, with processes
that always compute (one, as many as cores, twice as many), with every core busy half of the time, and with processes
that start and end all the time. What is right is the median of nine timings on the machine as it is, taken before and
after all others. Printed for each load: the error of the recorded ratio (median, 90th percentile and largest, of its
logarithm), and the share of repetitions that did not count. Without the priority kernels run as for a user who may not
take it; only root can show both.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.paired_timing import time_once
from benchmarks.random_load import random_load
from benchmarks.simulated_clock_ranking import build_schedules, open_bench
from halide_autotune.targets.build.executable import Executable

_TO_THE_END = ("--lost-over", "1e6")
_WITHOUT = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice")
_TIMINGS_OF_THE_TRUTH = 9
_COMES_AND_GOES = "while true; do python3 -c 'import json; json.dumps(list(range(300000)))'; done"


@dataclass(frozen=True)
class Errors:
    """The timings under one load.

    Attributes:
        logs: logarithms of the recorded over the right ratio.
        marked: share of the pairs that did not count.
    """

    pipeline: str
    priority: bool
    load: str
    logs: tuple[float, ...]
    marked: float


def main() -> int:
    """Print a table for each pipeline."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["separable_filter"], metavar="PIPELINE", help="of the examples")
    parser.add_argument("--schedules", type=int, default=8)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--output", type=Path, help="a JSON file of all errors")
    arguments = parser.parse_args()
    bench, found = open_bench(), []
    for name in arguments.names:
        with tempfile.TemporaryDirectory(prefix="sdk-loaded-") as folder:
            executable = build_schedules(bench, name, arguments.schedules, Path(folder), len(os.sched_getaffinity(0)))
            found += measure(name, executable, arguments.turns)
    if arguments.output:
        arguments.output.write_text(json.dumps([asdict(one) for one in found], indent=1))
    return 0


def measure(name: str, executable: Executable, turns: int) -> list[Errors]:
    """Time every schedule under every load."""
    can_show_both = os.geteuid() == 0 and shutil.which("setpriv") is not None
    before, found = truth(executable), []
    for priority, through in ((True, ()), (False, _WITHOUT)) if can_show_both else ((True, ()),):
        for load, begin in loads().items():
            ratios: list[tuple[str, float, float]] = []
            with begin():
                for kernel in random.Random(0).sample(
                    executable.kernels[1:] * turns, turns * len(executable.kernels[1:])
                ):
                    timed, _ = time_once(executable, kernel, ("--beside", executable.kernels[0], *_TO_THE_END), through)
                    marks = timed.disturbed_marks
                    ratios.append((kernel, timed.ratio or math.nan, sum(marks) / len(marks)))
            found.append((priority, load, ratios))
    after = truth(executable)
    right = {kernel: statistics.median([*before[kernel], *after[kernel]]) for kernel in before}
    errors = []
    print(f"{name}: {'priority':10}{'load':14}{'median':>8}{'90 %':>8}{'largest':>9}{'not counted':>13}")
    for priority, load, ratios in found:
        logs = tuple(math.log(ratio / right[kernel]) for kernel, ratio, _ in ratios)
        one = Errors(name, priority, load, logs, statistics.mean(marked for *_, marked in ratios))
        errors.append(one)
        sizes = sorted(map(abs, logs))
        figures = (
            f"{statistics.median(sizes):8.1%}{sizes[int(0.9 * len(sizes))]:8.1%}{sizes[-1]:9.1%}{one.marked:13.0%}"
        )
        print(f"{name}: {'taken' if priority else 'refused':10}{load:14}{figures}", flush=True)
    return errors


def truth(executable: Executable) -> dict[str, list[float]]:
    """Each kernel's ratios to the first on the machine as it is."""
    ratios: dict[str, list[float]] = {kernel: [] for kernel in executable.kernels[1:]}
    for _ in range(_TIMINGS_OF_THE_TRUTH):
        for kernel, values in ratios.items():
            timed, _ = time_once(executable, kernel, ("--beside", executable.kernels[0], *_TO_THE_END))
            values.append(timed.ratio or math.nan)
    return ratios


def loads() -> Mapping[str, Callable[[], AbstractContextManager[None]]]:
    """What else computes."""
    cores = len(os.sched_getaffinity(0))
    return {
        "none": contextlib.nullcontext,
        "one process": lambda: processes(1, [sys.executable, "-c", "while True: pass"]),
        "all cores": lambda: processes(cores, [sys.executable, "-c", "while True: pass"]),
        "twice that": lambda: processes(2 * cores, [sys.executable, "-c", "while True: pass"]),
        "half the time": random_load,
        "come and go": lambda: processes(cores, ["bash", "-c", _COMES_AND_GOES]),
    }


@contextlib.contextmanager
def processes(count: int, command: list[str]) -> Iterator[None]:
    """So many of them, with all that they start."""
    started = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
