"""How busy a remote device is: the share of the time after the first batch that it spends on schedules.

    python -m benchmarks.device_busy --rounds 4

A real OpenSSH server on this machine stands for the board. It measures on one core; searching, building, linking and
training have the other cores, as a lab's host has beside its boards. Everything that the device waits for lowers the
figure: the next executable, its push, the model. Goal: 90 %.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path

import sdk
from halide_autotune.sdk.settings import read_settings
from tests.loopback_lab import LoopbackLab
from tests.remote_board import ssh_board

GOAL = 0.9
# So large that one core builds a batch in less time than the board needs to time one.
LARGE = ("width=8192", "height=8192")


def main() -> int:
    """Run the loop and print the share; exit code 1 when it is below the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generator", nargs="?", default="examples/separable_filter.py")
    parser.add_argument("-p", dest="parameters", action="append", help="generator parameters")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("device_busy: needs two cores, one of them for the device.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="sdk-busy-") as text, ssh_board(Path(text) / "board") as board:
        folder = Path(text)
        lab = LoopbackLab(folder, [board], read_settings(), cores=cores[-1:])
        os.sched_setaffinity(0, cores[:-1])
        result = sdk.autotune(
            sdk.GeneratorSpec(arguments.generator, tuple(arguments.parameters or LARGE)),
            target="x86-64",
            device=board.name,
            options=sdk.RunOptions.of(
                no_history=True,
                inventory=lab.inventory,
                parallelism=1,
                rounds=arguments.rounds,
                batch_size=arguments.batch_size,
            ),
            run_folder=folder / "run",
            settings=lab.settings,
        )
        busy_s, span_s, samples = busy_time_s(folder / "run")
    share = busy_s / span_s
    if arguments.json:
        figures = {"busy_share": share, "goal": GOAL, "busy_s": busy_s, "span_s": span_s, "samples": samples}
        print(json.dumps({**figures, "stages_s": dict(result.totals.stages_s)}, indent=2))
    else:
        print(f"{samples} schedules after the first batch: the device was busy {busy_s:.1f} s of {span_s:.1f} s")
        print(f"busy: {share:.1%} (goal {GOAL:.0%})")
        print("stages:", ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in result.totals.stages_s.items()))
    return 0 if share >= GOAL else 1


def busy_time_s(run_folder: Path) -> tuple[float, float, int]:
    """Seconds that schedules held the device, of the seconds from the end of the first batch to that of the last.

    Returns:
        The two, and the number of schedules.
    """
    with sqlite3.connect(run_folder / "tuning.db") as database:
        rows = database.execute(
            "SELECT c.round, m.device_held_s, m.at_unix_s FROM measurements m JOIN candidates c ON c.symbol = m.symbol"
            " WHERE m.purpose = 'sample' ORDER BY m.at_unix_s"
        ).fetchall()
    first_end_s = max(at_s for round_index, _, at_s in rows if round_index == 0)
    later = [(held_s, at_s) for round_index, held_s, at_s in rows if round_index > 0]
    return sum(held_s for held_s, _ in later), max(at_s for _, at_s in later) - first_end_s, len(later)


if __name__ == "__main__":
    sys.exit(main())
