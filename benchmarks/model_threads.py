"""What fitting the model of a batch takes with all threads of BLAS and with one, beside nothing and beside other work.

    python -m benchmarks.model_threads [--repeats 5]

A run builds and times schedules while it fits its models, so that no core is idle. Printed for each number of busy
processes: seconds of both, in the median, and all threads' over one's; the goal is 1 at least where each core is busy.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time

from threadpoolctl import threadpool_limits

from benchmarks.loaded_ratios import processes
from halide_autotune.autotune_loop.search.models.schedule_model import ScheduleModel

GOAL, _BUSY = 1.0, [sys.executable, "-c", "while True: pass"]
_FUNCS, _NUMBERS, _SCHEDULES = 25, 20, 400


def main() -> int:
    """Print a row for each load; exit code 1 if one thread is slower where each core is busy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    chance, cores = random.Random(0), os.cpu_count() or 1
    funcs = [f"f{index}" for index in range(_FUNCS)]
    timed = [
        {func: tuple(float(chance.randrange(4)) for _ in range(_NUMBERS)) for func in funcs} for _ in range(_SCHEDULES)
    ]
    times_ms = [chance.uniform(1.0, 3.0) for _ in timed]

    def fit_s(threads: int | None) -> float:
        started_s = time.perf_counter()
        with threadpool_limits(limits=threads, user_api="blas"):
            ScheduleModel(timed, times_ms)
        return time.perf_counter() - started_s

    ratio = 0.0
    for busy in (0, cores):
        with processes(busy, _BUSY):
            pairs = [(fit_s(None), fit_s(1)) for _ in range(repeats)]
        all_s, one_s = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(both / one for both, one in pairs)
        print(f"{busy} busy processes: {all_s:6.2f} s with all threads, {one_s:6.2f} s with one, ratio {ratio:.1f}")
    return 0 if ratio >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
