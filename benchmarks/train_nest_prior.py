"""What the loop nests of random programs say of any pipeline's schedules: recorded, learnt, and tried on the examples.

    python -m benchmarks.train_nest_prior --folder recipe [--profile x86-64] [--pipelines 40] [--ship] [--judge RUN …]

(1) A run over random programs (`benchmarks/random_pipeline.py`), a batch of each, half sampled by Halide's search and
half sketches; (2) their loop nests, and a Gaussian process over them; (3) what it says of recorded runs of pipelines
that it has never seen, without any time of theirs: how many pairs it puts in order, and how near the best of its first
8 comes. With --ship it goes into the package, if it puts 60 % of the pairs in order. What is recorded already in the
folder is not recorded again.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import numpy as np

from benchmarks.recorded_nests import RecordedNests, recorded_nests
from benchmarks.simulated_clock_ranking import open_bench
from benchmarks.train_weights import record
from halide_autotune.autotune_loop.cost_model.ranking import best_in_top, ordered_pairs
from halide_autotune.autotune_loop.search.techniques.nest_prior import SHIPPED, NestPrior, fit_prior, write_prior

GOAL = 0.6
# Of fewer schedules it cannot be told what is usual.
_FEWEST = 8


def main() -> int:
    """Print a row for each pipeline that it is tried on; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--profile", default="x86-64")
    parser.add_argument("--pipelines", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--judge", type=Path, nargs="*", default=[], metavar="RUN")
    parser.add_argument("--ship", action="store_true")
    options = parser.parse_args()
    folder = options.folder / "random_nests"
    if not folder.exists():
        options.folder.mkdir(parents=True, exist_ok=True)
        sets = [(f"seed={seed}", f"stages={4 + seed % 10}") for seed in range(1, options.pipelines + 1)]
        record("benchmarks/random_pipeline.py", folder, sets, options.batch_size, options.profile)
    bench = open_bench()
    recorded = [each for each in recorded_nests(folder, bench) if len(each.times_ms) >= _FEWEST]
    prior = fit_prior([(each.nests, each.times_ms) for each in recorded])
    print(f"{sum(len(each.times_ms) for each in recorded)} schedules of {len(recorded)} random programs")
    accuracies = []
    for run in options.judge:
        for each in recorded_nests(run, bench):
            accuracy, best = judged(prior, each)
            accuracies.append(accuracy)
            print(
                f"{each.name:20}{len(each.times_ms):6} schedules{accuracy:8.1%} of pairs in order, best of 8 {best:.2f}"
            )
    if not accuracies or statistics.mean(accuracies) < GOAL:
        return 1
    if options.ship:
        write_prior(prior, SHIPPED)
    return 0


def judged(prior: NestPrior, recorded: RecordedNests) -> tuple[float, float]:
    """The share of pairs in order, and the best of the first 8 over the best of all."""
    features = np.array(recorded.nests)
    expected, times_ms = prior.expected(features - features.mean(axis=0)), np.array(recorded.times_ms)
    right, pairs = ordered_pairs(expected, times_ms)
    return right / max(1, pairs), best_in_top(expected, times_ms, 8) or np.nan


if __name__ == "__main__":
    sys.exit(main())
