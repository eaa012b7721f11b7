"""How long a replay of a recorded run takes, and how much sooner the model finds a good schedule than chance does.

    python -m benchmarks.replay_speed [--samples 1000] [--run RUN] [--json]

Without --run the recording is a made one in the real layout: its times follow from its features, with noise. Goal: a
run of 1,000 schedules in under 60 s. The exit code says whether it was met.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from halide_autotune.sdk.api.replay import replay
from tests.recorded_run_folder import write_run_folder

GOAL_S = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or Path(folder) / "run"
        if options.run is None:
            write_run_folder(run, options.samples)
        started_s = time.monotonic()
        (result, *_) = replay(run)
        duration_s = time.monotonic() - started_s
    within = result.best_ms * 1.05
    by_chance = next((done.timed for done in result.rounds if done.shuffled_best_ms <= within), None)
    told = {
        "samples": result.recorded,
        "rounds": len(result.rounds),
        "duration_s": duration_s,
        "goal_s": GOAL_S,
        "samples_until_5_percent": result.samples_until(0.05),
        "samples_until_5_percent_by_chance": by_chance,
    }
    print(json.dumps(told, indent=2) if options.json else "\n".join(f"{key}: {value}" for key, value in told.items()))
    return 0 if duration_s < GOAL_S else 1


if __name__ == "__main__":
    sys.exit(main())
