"""How many schedules of a run fail, and of what: where Halide's vectors are wrong for a target, most would.

    python -m benchmarks.failed_schedules FOLDER/apps/hexagon_benchmarks/*_generator.cpp --target riscv64-rvv \
        --options="--size input=192x128"

Each generator is tuned for the budget. Printed for each: schedules timed and failed, the share that failed in the first
and in the second half of the run, the fastest one's time, and how they failed. The sources are yours to give. The exit
code is 1 where a run has no result.
"""

from __future__ import annotations

import argparse
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path


def main() -> int:
    """Print a row for each generator, as it is done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generators", nargs="+")
    parser.add_argument("--target", default="riscv64-rvv")
    parser.add_argument("--budget", default="3m")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--options", default="", help="of `sdk autotune`, such as --size input=192x128")
    arguments = parser.parse_args()
    has_all = True
    print("generator, seed | timed | failed | first half | second half | fastest, ms | how", flush=True)
    for generator in arguments.generators:
        for seed in range(arguments.seeds):
            with tempfile.TemporaryDirectory(prefix="failed-schedules-") as folder:
                run = Path(folder) / "run"
                command = [sys.executable, "-m", "halide_autotune.sdk.main", "autotune", generator, "--no-history"]
                command += ["--target", arguments.target, "--budget", arguments.budget, "--seed", str(seed)]
                command += ["--run-dir", str(run), *arguments.options.split()]
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                row = row_of(run) if (run / "tuning.db").is_file() else "no run"
                print(f"{Path(generator).stem}, {seed} | {row}", flush=True)
                if ended.returncode != 0:
                    print(ended.stderr.strip()[-500:], file=sys.stderr)
                    has_all = False
    return 0 if has_all else 1


def row_of(run: Path) -> str:
    """The figures of a run's folder."""
    with closing(sqlite3.connect(run / "tuning.db")) as database:
        times = dict(database.execute("SELECT symbol, median_ms FROM measurements"))
        failures = dict(
            database.execute(
                "SELECT symbol, stage || ': ' || reason FROM failures WHERE stage IN ('build', 'measure', 'race')"
            )
        )
        order = [symbol for (symbol,) in database.execute("SELECT symbol FROM candidates ORDER BY rowid")]
    ended = [symbol for symbol in order if symbol in times or symbol in failures]
    failed = [symbol in failures for symbol in ended]
    half = len(failed) // 2
    kinds = {kind: [*failures.values()].count(kind) for kind in sorted({*failures.values()})}
    shares = " | ".join(f"{sum(part) / max(1, len(part)):.0%}" for part in (failed[:half], failed[half:]))
    fastest_ms = min((times[symbol] for symbol in order if symbol in times), default=float("nan"))
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"{len(failed) - sum(failed)} | {sum(failed)} | {shares} | {fastest_ms:.4g} | {told}"


if __name__ == "__main__":
    sys.exit(main())
