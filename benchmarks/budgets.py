"""How far runs of `sdk autotune` exceed their budgets, on this machine's clock and on a simulated one.

    python -m benchmarks.budgets --budgets 1 10 45 --targets host arm64 --loaded

Each run is a process of its own, as a user starts it; its wall time counts from the start of the process to its end. A
run may exceed its budget by a quarter or by ten seconds, whichever is more. It ends with a result (exit code 0), or
with the one sentence that says that the budget was too short (exit code 1). Before, what is made only once is made: the
target's C library and the plug-ins of the schedules. With --loaded, every core is busy half of the time, at random.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.random_load import random_load

EXAMPLES = Path(__file__).parents[1] / "examples"
_OVERTIME_SHARE, _LEAST_OVERTIME_S = 0.25, 10.0
_WARM_UP_BUDGET_S = 60.0
_TOO_SHORT = "was too short"
_COMMAND = [sys.executable, "-c", "import sys; from halide_autotune.sdk.main import main; sys.exit(main())", "autotune"]


@dataclass(frozen=True)
class Run:
    """One run, as its user sees it.

    Attributes:
        timed: schedules, or why there is none.
        is_right: it ended as a run may end.
    """

    target: str
    budget_s: float
    took_s: float
    timed: str
    is_right: bool

    @property
    def over_s(self) -> float:
        """How much longer than its budget it took."""
        return self.took_s - self.budget_s

    @property
    def of_allowed(self) -> float:
        """That, as a share of what is allowed."""
        return self.over_s / max(_OVERTIME_SHARE * self.budget_s, _LEAST_OVERTIME_S)


def main() -> int:
    """Print a row for each run; 1 if one took too long, or ended in another way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generator", type=Path, default=EXAMPLES / "separable_filter.py")
    parser.add_argument("--budgets", type=float, nargs="+", default=[1.0, 10.0, 45.0], metavar="SECONDS")
    parser.add_argument("--targets", nargs="+", default=["host", "arm64"])
    parser.add_argument("--loaded", action="store_true", help="beside other load")
    parser.add_argument("options", nargs="*", help="after --, for every run, such as -p width=640")
    arguments = parser.parse_args()
    runs: list[Run] = []
    for target in arguments.targets:
        tune(arguments.generator, target, _WARM_UP_BUDGET_S, ("--num-batches", "1", *arguments.options))
        with random_load() if arguments.loaded else contextlib.nullcontext():
            for budget_s in arguments.budgets:
                runs.append(tune(arguments.generator, target, budget_s, arguments.options))
                print(row(runs[-1]), flush=True)
    return 0 if all(run.is_right and run.of_allowed <= 1.0 for run in runs) else 1


def tune(generator: Path, target: str, budget_s: float, options: Sequence[str]) -> Run:
    """Run once, in a folder that is deleted."""
    with tempfile.TemporaryDirectory(prefix="sdk-budgets-") as folder:
        asked = [str(generator), "--target", target, "--budget", f"{budget_s:g}s", "--plain", *options]
        started_s = time.monotonic()
        done = subprocess.run(
            [*_COMMAND, "--no-history", *asked, "--run-dir", f"{folder}/run"],
            env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        took_s = time.monotonic() - started_s
    if done.returncode:
        timed, is_right = done.stderr.strip().splitlines()[-1], done.returncode == 1 and _TOO_SHORT in done.stderr
    else:
        timed = next((line.strip() for line in done.stdout.splitlines() if line.startswith("  timed")), done.stdout)
        is_right = True
    return Run(target, budget_s, took_s, timed, is_right)


def row(run: Run) -> str:
    """One line: target, budget, time, overrun as a ratio and as a share of what is allowed."""
    ratio = f"{run.took_s / run.budget_s:5.2f}× the budget, {run.of_allowed:4.0%} of what it may exceed it by"
    return f"{run.target:12} {run.budget_s:6g} s: took {run.took_s:6.1f} s, {ratio}; {run.timed}"


if __name__ == "__main__":
    sys.exit(main())
