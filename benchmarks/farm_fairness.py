"""Whether runs that share a farm get their fair shares of its devices.

    python -m benchmarks.farm_fairness            two minutes
    python -m benchmarks.farm_fairness --full     longer windows, five minutes

Two runs at once, whose schedules take different times; two of different priorities; and one that comes when another
has had the farm to itself. Devices only wait; the scheduler, the workers and the clients are real. A run's fair share
of the device seconds is its priority's weight over the sum of all. Goal: each run within 10 % of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.waiting_farm import WaitingFarm, WaitingRun, device_names, stand_in, waiting_farm
from halide_autotune.autotune_loop.farm.fair_share import RunPriority

GOAL = 0.1
_SETTLING_S = 3.0
# More than a window has time for: a run without work has no claim.
_MANY = 20_000


@dataclass(frozen=True)
class Contender:
    """One of the runs.

    Attributes:
        hold_s: what one of its measurements takes.
        comes_after_s: how long the others have the farm before it.
    """

    hold_s: float
    priority: RunPriority = RunPriority.NORMAL
    comes_after_s: float = 0.0


CASES = {
    "short and long schedules": (Contender(0.15), Contender(0.7)),
    "high and normal priority": (Contender(0.3, RunPriority.HIGH), Contender(0.3)),
    "one comes late": (Contender(0.2), Contender(0.4, comes_after_s=10.0)),
    "three runs": (Contender(0.2), Contender(0.5), Contender(0.3, RunPriority.LOW)),
}


def shares(farm: WaitingFarm, folder: Path, contenders: tuple[Contender, ...], window_s: float) -> list[float]:
    """Each run's share of the device seconds in a window in which all of them want more than there is."""
    over = threading.Event()
    with contextlib.ExitStack() as exits:
        runs, threads = [], []
        for index, contender in enumerate(contenders):
            time.sleep(contender.comes_after_s)
            names = device_names(sum(len(devices) for devices in farm.devices.values()))
            run = WaitingRun(folder / str(index), names, farm.address, contender.priority, f"run {index}")
            exits.enter_context(run)
            thread = threading.Thread(target=_keep_busy, args=(run, contender.hold_s, over))
            thread.start()
            exits.callback(thread.join)
            exits.callback(over.set)
            runs.append(run)
            threads.append(thread)
        time.sleep(_SETTLING_S)
        before_s = [run.held_s for run in runs]
        time.sleep(window_s)
        held_s = [run.held_s - before for run, before in zip(runs, before_s, strict=True)]
    return [one / sum(held_s) for one in held_s]


def _keep_busy(run: WaitingRun, hold_s: float, over: threading.Event) -> None:
    run.measure([f"s{index}" for index in range(_MANY)], hold_s, over.is_set)


def main() -> int:
    """Print each run's share beside its fair one; exit code 1 when one is off by more than the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--window", type=float, default=20.0, metavar="S")
    parser.add_argument("--full", action="store_true", help="windows of a minute")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    stand_in()
    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="sdk-farm-") as text,
        waiting_farm(Path(text), arguments.devices, 2) as farm,
    ):
        for case, contenders in CASES.items():
            got = shares(farm, Path(text) / case, contenders, 60.0 if arguments.full else arguments.window)
            weights = [contender.priority.weight for contender in contenders]
            fair = [weight / sum(weights) for weight in weights]
            rows.append({"case": case, "shares": got, "fair": fair})
            if not arguments.json:
                told = ", ".join(f"{one:.1%} of {wanted:.1%}" for one, wanted in zip(got, fair, strict=True))
                print(f"{case:26} {told}", flush=True)
    if arguments.json:
        print(json.dumps(rows, indent=2))
    worst = max(abs(g / f - 1) for row in rows for g, f in zip(row["shares"], row["fair"], strict=True))
    if not arguments.json:
        print(f"the furthest from its fair share: {worst:.1%} (goal {GOAL:.0%})")
    return 0 if worst <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
