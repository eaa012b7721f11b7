"""How many schedules a default run times until it is as fast as the best of many of Halide's own search.

    python -m benchmarks.trials_needed FOLDER/apps/harris/harris_generator.cpp:harris ... --trials 500

Of each generator Halide's search samples so many schedules, at random as its weights have it (`--technique sampling
--random-share 1`), or as many as it finds in the time limit; then a default run, without a history and with the
generator's own schedule unseen, goes on until it has timed a schedule as fast as the best of them. Both times are of
runs of their own, so a schedule counts as as fast within 2 %. AutoTVM asks the same in its figures 4 to 7.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import sdk
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run

GOAL = 125
_AS_FAST = 1.02


def main() -> int:
    """Print a row for each generator; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generators", nargs="+")
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--limit-s", type=float, default=600.0, help="of each of the two runs")
    arguments = parser.parse_args()
    needed = []
    print(f"{'generator':20}{'sampled':>9}{'best ms':>10}{'default run':>13}{'best ms':>10}{'needed':>9}", flush=True)
    for generator in arguments.generators:
        sampled = _times_ms(generator, arguments, technique=["sampling"], random_share=1.0)[: arguments.trials]
        found = _times_ms(generator, arguments)
        best_ms = min(sampled)
        place = next((place for place, ms in enumerate(found, 1) if ms <= _AS_FAST * best_ms), len(found) + 1)
        needed.append(place)
        name = generator.rpartition(":")[2].rpartition("/")[2]
        print(f"{name:20}{len(sampled):9}{best_ms:10.3f}{len(found):13}{min(found):10.3f}{place:9}", flush=True)
    print(f"in the median {statistics.median(needed):g}")
    return 0 if statistics.median(needed) <= GOAL else 1


def _times_ms(generator: str, arguments: argparse.Namespace, **asked: object) -> list[float]:
    """Of all schedules, in the order of timing."""
    with tempfile.TemporaryDirectory(prefix="trials-needed-") as text:
        folder = Path(text) / "run"
        options = sdk.RunOptions.of(
            budget_s=arguments.limit_s,
            no_history=True,
            ignore_own_schedule=True,
            rounds=-(-arguments.trials // 32),
            **asked,
        )
        sdk.autotune(sdk.GeneratorSpec(generator), target=arguments.target, run_folder=folder, options=options)
        return [sample.median_ms for sample in read_recorded_run(folder).samples]


if __name__ == "__main__":
    sys.exit(main())
