"""What the loop nests of random programs say of other pipelines' schedules, without any time of theirs.

    python -m benchmarks.nest_prior [--prior FILE.nests.npz] RUN ...

Of each pipeline of recorded runs, which nothing was learnt from: how many pairs of its schedules are in order, and how
near the best of the first 8 comes to the best of all. Then how many are in order without a part of what says it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.recorded_nests import RecordedNests, recorded_nests
from benchmarks.simulated_clock_ranking import open_bench
from halide_autotune.autotune_loop.cost_model.ranking import best_in_top, ordered_pairs
from halide_autotune.autotune_loop.search.models.nest_prior import SHIPPED, NestPrior, read_prior

GOAL = 0.7


def main() -> int:
    """Print a row for each pipeline; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--prior", type=Path, default=SHIPPED)
    arguments = parser.parse_args()
    prior, bench = read_prior(arguments.prior), open_bench()
    assert prior is not None, "it is of other features"
    recorded = [each for run in arguments.runs for each in recorded_nests(run, bench)]
    for each in recorded:
        accuracy, best = judged(prior, each)
        print(f"{each.name:20}{len(each.times_ms):6} schedules{accuracy:8.1%} of pairs, best of 8 {best:.2f}")
    parts = {"in the mean": prior, "without the sum": replace(prior, cost=None)}
    means = {name: statistics.mean(judged(part, each)[0] for each in recorded) for name, part in parts.items()}
    for name, mean in means.items():
        print(f"{mean:.1%} {name}")
    return 0 if means["in the mean"] >= GOAL else 1


def judged(prior: NestPrior, recorded: RecordedNests) -> tuple[float, float]:
    """The share of pairs in order, and the best of the first 8 over the best of all."""
    features = np.array(recorded.nests)
    expected, times_ms = prior.expected(features, features.mean(axis=0)), np.array(recorded.times_ms)
    right, pairs = ordered_pairs(expected, times_ms)
    return right / max(1, pairs), best_in_top(expected, times_ms, 8) or np.nan


if __name__ == "__main__":
    sys.exit(main())
