"""Workers of a farm killed with SIGKILL in mid-run: no measurement may be lost, and none counted twice.

    python -m benchmarks.farm_kill             ten kills, about a minute
    python -m benchmarks.farm_kill --kills 100

Four workers with two devices each, which only wait; one of them after the other is killed while it measures, and is
started again. Every schedule must come back once, with one row in the run's database.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sqlite3
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.waiting_farm import WaitingFarm, WaitingRun, device_names, stand_in, start_worker, waiting_farm

_DEVICES = 8
_MEMBERS = 4
_SCHEDULES_A_BATCH = 50


def kill_workers(kills: int, hold_s: float, seed: int) -> dict[str, object]:
    """Measure until so many workers were killed and started again; returns what came of it."""
    with tempfile.TemporaryDirectory(prefix="sdk-farm-") as text:
        folder = Path(text)
        with (
            waiting_farm(folder, _DEVICES, _MEMBERS) as farm,
            WaitingRun(folder / "run", device_names(_DEVICES), farm.address, title="farm_kill") as run,
        ):
            killer = _Killer(farm, folder, kills, random.Random(seed))
            killer.start()
            submitted, left_out, started_s = 0, 0, time.monotonic()
            while killer.is_alive() or submitted == 0:
                symbols = [f"s_{submitted + index}" for index in range(_SCHEDULES_A_BATCH)]
                left_out += run.measure(symbols, hold_s)
                submitted += len(symbols)
            elapsed_s = time.monotonic() - started_s
            killer.join()
            if killer.trouble is not None:
                raise killer.trouble
            counted = dict(run.measured)
        with contextlib.closing(sqlite3.connect(folder / "run" / "tuning.db")) as database:
            rows = dict(database.execute("SELECT symbol, COUNT(*) FROM measurements GROUP BY symbol").fetchall())
            incidents = database.execute("SELECT COUNT(*) FROM incidents").fetchone()[0]
    return {
        "kills": killer.done,
        "schedules": submitted,
        "lost": left_out + sum(1 for index in range(submitted) if rows.get(f"s_{index}", 0) == 0),
        "counted_twice": sum(1 for times in (*rows.values(), *counted.values()) if times > 1),
        "incidents": incidents,
        "elapsed_s": elapsed_s,
    }


class _Killer(threading.Thread):
    """Kills a worker that is there, waits a little, starts it again.

    Attributes:
        done: kills so far.
        trouble: why it ended early.
    """

    def __init__(self, farm: WaitingFarm, folder: Path, kills: int, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._farm, self._folder, self._kills, self._chance = farm, folder, kills, chance
        self.done = 0
        self.trouble: Exception | None = None

    def run(self) -> None:
        try:
            for _ in range(self._kills):
                time.sleep(self._chance.uniform(0.5, 2.0))
                name = self._chance.choice(sorted(self._farm.workers))
                process = self._farm.workers[name]
                process.kill()
                process.wait()
                self.done += 1
                time.sleep(self._chance.uniform(0.0, 2.0))
                start_worker(self._farm, self._folder, name, self._farm.devices[name])
        except Exception as error:
            self.trouble = error


def main() -> int:
    """Print what came of it; exit code 1 when a measurement was lost or counted twice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--hold", type=float, default=0.2, metavar="S", help="what one measurement takes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    stand_in()
    found = kill_workers(arguments.kills, arguments.hold, arguments.seed)
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        print(
            f"{found['kills']} kills while {found['schedules']} schedules were timed in {found['elapsed_s']:.0f} s:"
            f" {found['lost']} lost, {found['counted_twice']} counted twice; {found['incidents']} were done again"
        )
    return int(bool(found["lost"] or found["counted_twice"]))


if __name__ == "__main__":
    sys.exit(main())
