"""What one timing of a schedule is worth: alone and beside a yardstick, on a quiet and on a loaded machine.

    python -m benchmarks.paired_timing corner_detector --schedules 20 --output paired.json

Random Adams2019 schedules of an example are linked into one executable. What each really takes is settled first, in
turns: in each turn every schedule is timed beside the yardstick in a process of its own, in random order; the median of
its ratios, for as many turns as are asked for. Then every schedule is timed once alone, as long as a run times one, and
once beside the yardstick with the race on; first on the machine as it is, then with other load that keeps every core
busy half of the time. Printed for each: Spearman's rank correlation of the recorded with the settled times, over all
schedules and over the faster half; the settled time of the one that is recorded as the best, as a multiple of the best
(what choosing by this number costs); the scatter of recorded about settled times (a robust standard deviation of the
logarithm); seconds that a timing takes; and the share of them spent on schedules over 1.5 times slower than the best.

Goals for the yardstick: a correlation of 0.98 quiet and 0.95 loaded, and half the time for what is hopeless.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.random_load import random_load
from benchmarks.simulated_clock_ranking import build_schedules, open_bench, spearman
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measurement import Beside, Measurement
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited

HOPELESS = 1.5
# As a run times schedules.
_TIMING = "--time --warm-up-s 0.02 --precision 0.01 --max-time-s 0.3 --max-repetitions 2000".split()
_LEAST_PAIRED_S, _LOST_FACTOR = 0.05, 1.1
_GIVE_UP_FACTOR = 4.0
_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=4 * 2**30)


@dataclass(frozen=True)
class Recorded:
    """One way of timing, on a machine in one state.

    Attributes:
        times: schedule → what was recorded; seconds alone, a ratio beside the yardstick.
        held_s: schedule → seconds that its process took.
    """

    load: str
    way: str
    times: Mapping[str, float]
    held_s: Mapping[str, float]


def main() -> int:
    """Print a table for each pipeline, and write every number to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["corner_detector"], metavar="PIPELINE", help="of the examples")
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--turns", type=int, default=15, help="that settle what each schedule takes")
    parser.add_argument("--repeats", type=int, default=3, help="of what is compared")
    parser.add_argument("--precision", type=float, default=0.02, help="beside the yardstick")
    parser.add_argument("--output", type=Path, help="a JSON file of all times")
    arguments = parser.parse_args()
    bench = open_bench()
    kept: dict[str, Any] = {}
    for name in arguments.names:
        with tempfile.TemporaryDirectory(prefix="sdk-paired-") as folder:
            executable = build_schedules(bench, name, arguments.schedules, Path(folder), len(os.sched_getaffinity(0)))
            yardstick = executable.kernels[0]
            settled = settle(executable, yardstick, arguments.turns)
            recorded = [
                record(executable, yardstick, load, way, min(settled.values()), arguments.precision)
                for _ in range(arguments.repeats)
                for load in ("quiet", "loaded")
                for way in ("alone", "beside")
            ]
        kept[name] = {"settled": settled, "recorded": [asdict(one) for one in recorded]}
        print_table(name, settled, recorded)
        if arguments.output:
            arguments.output.write_text(json.dumps(kept, indent=1))
    return 0


def settle(executable: Executable, yardstick: str, turns: int) -> dict[str, float]:
    """What each schedule takes as a multiple of the yardstick's time: the median over the turns."""
    chance = random.Random(0)
    ratios: dict[str, list[float]] = {kernel: [] for kernel in executable.kernels}
    for turn in range(turns):
        print(f"settling, turn {turn + 1} of {turns}", end="\r", file=sys.stderr)
        for kernel in chance.sample(executable.kernels, len(executable.kernels)):
            timed, _ = time_once(executable, kernel, ("--beside", yardstick))
            ratios[kernel].append(recorded_time(timed))
    return {kernel: statistics.median(values) for kernel, values in ratios.items()}


def record(
    executable: Executable, yardstick: str, load: str, way: str, best_ratio: float, precision: float
) -> Recorded:
    """Time every schedule once."""
    options: tuple[str, ...] = ()
    if way == "beside":
        lost_over = _LOST_FACTOR * min(1.0, best_ratio)
        options = ("--beside", yardstick, "--lost-over", repr(lost_over), "--min-time-s", repr(_LEAST_PAIRED_S))
        options += ("--precision", repr(precision))
    times, held_s = {}, {}
    with random_load() if load == "loaded" else contextlib.nullcontext():
        usual, _ = time_once(executable, yardstick, ())
        give_up = repr(_GIVE_UP_FACTOR * best_ratio * recorded_time(usual))
        for kernel in executable.kernels:
            timed, held_s[kernel] = time_once(executable, kernel, (*options, "--give-up-over-s", give_up))
            times[kernel] = recorded_time(timed)
    return Recorded(load, way, times, held_s)


def time_once(
    executable: Executable, kernel: str, options: Sequence[str], through: Sequence[str] = ()
) -> tuple[Measurement, float]:
    """The schedule's times, and the seconds that its process took.

    Args:
        through: a command that starts the process.

    Raises:
        RuntimeError: the schedule does not run.
    """
    command = [*through, str(executable.path), "--kernel", kernel, *_TIMING, *options]
    outcome = run_limited(command, _LIMITS, environment={})
    for line in outcome.log.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "timed":
            return read_timed(kernel, event), outcome.duration_s
    raise RuntimeError(f"{kernel} {outcome.describe()}: {outcome.log[-300:]}")


def read_timed(kernel: str, timed: Mapping[str, Any]) -> Measurement:
    """The runner's event `timed` as a run keeps it."""
    marks = (tuple(timed[key]) for key in ("beside_s", "beside_disturbed", "beside_first") if key in timed)
    beside = Beside(timed["beside"], *marks) if "beside" in timed else None
    times_s, disturbed = tuple(timed["repetitions_s"]), tuple(timed["disturbed"])
    return Measurement(kernel, "local", Clock.WALL, times_s, "", False, disturbed=disturbed, beside=beside)


def recorded_time(measurement: Measurement) -> float:
    """The ratio to the yardstick; alone the median in seconds."""
    return measurement.median_s if measurement.ratio is None else measurement.ratio


def print_table(name: str, settled: Mapping[str, float], recorded: Sequence[Recorded]) -> None:
    """One line for each load and way, medians over the repeats."""
    print(f"{name}: {len(settled)} schedules, the slowest {max(settled.values()) / min(settled.values()):.1f} times")
    print(f"{'':16}{'rank':>6}{'half':>6}{'chosen':>8}{'scatter':>9}{'a timing':>10}{'hopeless':>10}")
    kernels = list(settled)
    true = np.array([settled[kernel] for kernel in kernels])
    half = true <= np.median(true)
    for load, way in dict.fromkeys((one.load, one.way) for one in recorded):
        rows = []
        for one in recorded:
            if (one.load, one.way) != (load, way):
                continue
            times = np.array([one.times[kernel] for kernel in kernels])
            held_s = np.array([one.held_s[kernel] for kernel in kernels])
            logs = np.log(times / true)
            scatter = 1.4826 * np.median(np.abs(logs - np.median(logs)))
            chosen = true[times.argmin()] / true.min()
            hopeless = held_s[true > HOPELESS * true.min()].sum() / held_s.sum()
            rank = (spearman(true, times), spearman(true[half], times[half]))
            rows.append((*rank, chosen, scatter, held_s.mean(), hopeless))
        rank, rank_half, chosen, scatter, timing_s, hopeless = np.median(np.array(rows), axis=0)
        figures = f"{rank:6.2f}{rank_half:6.2f}{chosen:7.2f}×{scatter:9.1%}{timing_s:8.2f} s{hopeless:10.0%}"
        print(f"{load:8}{way:8}{figures}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
