"""A day of rounds in minutes: the memory, open files, threads, temporary files and database of a run, by round.

    python -m benchmarks.day_of_rounds             2,880 rounds of half a minute

Devices that only wait stand in for real ones, and wait shortly; the dispatcher, the executor, the device queues and the
run's database are real. Searches, builds and training are `benchmarks.memory_over_rounds`' business.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from benchmarks.waiting_farm import WaitingRun, device_names, resident_bytes, stand_in

_DEVICES = 4
_SCHEDULES_A_ROUND = 32
_HOLD_S = 0.001
# Between the quarter around the middle and the last quarter: resident memory moves by pages that are not given back.
_MEMORY_GOAL = 1.05
_DATABASE_GOAL = 1.10


@dataclass(frozen=True)
class Footprint:
    """What the process has after a round; `database_bytes` is what the round has added."""

    memory_bytes: float
    open_files: float
    threads: float
    temporary_files: float
    database_bytes: float


def day(folder: Path, rounds: int) -> list[Footprint]:
    """Time so many rounds of schedules on waiting devices; returns the footprint after each."""
    found, database_bytes = [], 0
    temporary = folder / "tmp"
    temporary.mkdir()
    tempfile.tempdir = str(temporary)
    try:
        with WaitingRun(folder / "run", device_names(_DEVICES)) as run:
            for index in range(rounds):
                left = run.measure([f"r{index}_s{sample}" for sample in range(_SCHEDULES_A_ROUND)], _HOLD_S)
                run.database.add_batch(index, 0, {"measure": _HOLD_S})
                lost = left or [symbol for symbol, times in run.measured.items() if times != 1]
                assert not lost and len(run.measured) == _SCHEDULES_A_ROUND, f"not once: {lost}"
                run.measured.clear()
                run.ends_s.clear()
                size_bytes = sum(file.stat().st_size for file in run.folder.glob("tuning.db*"))
                found.append(
                    Footprint(
                        resident_bytes(os.getpid()),
                        len(os.listdir("/proc/self/fd")),
                        threading.active_count(),
                        len(list(temporary.iterdir())),
                        size_bytes - database_bytes,
                    )
                )
                database_bytes = size_bytes
    finally:
        tempfile.tempdir = None
    return found


def growth(found: Sequence[Footprint]) -> dict[str, tuple[float, float]]:
    """The mean of the quarter after the middle, and of the last quarter."""
    half, quarter = len(found) // 2, max(1, len(found) // 4)
    parts = [found[half : half + quarter], found[-quarter:]]
    means = [[statistics.fmean(column) for column in zip(*map(astuple, part), strict=True)] for part in parts]
    return {field.name: (means[0][at], means[1][at]) for at, field in enumerate(fields(Footprint))}


def is_flat(name: str, middle: float, end: float) -> bool:
    """Whether it has not grown in the second half."""
    goal = {"memory_bytes": _MEMORY_GOAL, "database_bytes": _DATABASE_GOAL}.get(name, 1.0)
    return end <= goal * middle + 0.5


def main() -> int:
    """Print how each grows in the second half; exit code 1 when one does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2880)
    arguments = parser.parse_args()
    stand_in()
    with tempfile.TemporaryDirectory(prefix="sdk-day-") as folder:
        means = growth(day(Path(folder), arguments.rounds))
    for name, (middle, end) in means.items():
        print(f"{name:15} {middle:14.1f} after the middle, {end:14.1f} at the end")
    return 0 if all(is_flat(name, *pair) for name, pair in means.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
