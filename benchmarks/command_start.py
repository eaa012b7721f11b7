"""How long the command line takes to start: `sdk --help` and `sdk targets`, against an empty Python.

python -m benchmarks.command_start
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

REPETITIONS = 15
GOAL_S = 0.3


def main() -> int:
    """Print medians with spread; exit code 1 when a median is over the goal."""
    command = str(Path(sys.executable).with_name("sdk"))
    cases = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "sdk --help": [command, "--help"],
        "sdk targets": [command, "targets"],
    }
    worst_s = 0.0
    for name, arguments in cases.items():
        times_s = [run_s(arguments) for _ in range(REPETITIONS)]
        median_s = statistics.median(times_s)
        print(f"{name:16} median {median_s * 1e3:6.0f} ms  [{min(times_s) * 1e3:.0f}, {max(times_s) * 1e3:.0f}]")
        worst_s = max(worst_s, median_s)
    print(f"goal: under {GOAL_S * 1e3:.0f} ms")
    return 0 if worst_s < GOAL_S else 1


def run_s(arguments: Sequence[str]) -> float:
    """Seconds that a process takes from its start to its end, which must be a good one."""
    started = time.perf_counter()
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
