"""How near to a batch's best a schedule must be for it to be worth timing again.

    python -m benchmarks.leader_races [--batches 300]

Batches are drawn by chance, and timed as a run times them: each ratio is off by what it differs by from process to
process. Those that are near the best are then raced (`autotune_loop.measure.leader_race`), by several widths. Printed
for each kind of batch and width, in standard errors: how many timings a race takes, and how far the schedule that then
leads is behind the fastest; means. The goal is that by the width of runs it is behind by at most a tenth of a per cent
more than by `DEVIATIONS`, with half of the timings.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.candidate import Measured
from halide_autotune.autotune_loop.measure.leader_race import NEAR, LeaderRace
from halide_autotune.autotune_loop.run_scale import DEVIATIONS, PROCESS_NOISE
from tests.measured_candidates import measured

WIDTHS = (0.0, NEAR, 1.0, 1.5, DEVIATIONS)
GOAL_BEHIND, GOAL_TIMINGS = 0.001, 1 / 2


@dataclass(frozen=True)
class Kind:
    """Batches of so many schedules, with times evenly spread from 1 to `slowest`; the best before them is `known`."""

    schedules: int
    slowest: float
    known: float

    def __str__(self) -> str:
        known = "nothing known" if math.isinf(self.known) else f"{self.known:.2f} known"
        return f"{self.schedules} schedules up to {self.slowest:.1f}, {known}"


KINDS = (Kind(30, 1.5, 1.03), Kind(12, 1.2, 1.03), Kind(12, 1.1, 1.03), Kind(12, 1.2, math.inf))


def main() -> int:
    """Print a row for each kind and width; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=300)
    batches, results = parser.parse_args().batches, dict[float, list[tuple[float, float]]]()
    for kind in KINDS:
        for width in WIDTHS:
            behind, timings = race(kind, width, batches)
            results.setdefault(width, []).append((behind, timings))
            print(_row(str(kind), width, behind, timings), flush=True)
    means = {width: [statistics.mean(column) for column in zip(*rows, strict=True)] for width, rows in results.items()}
    for width, (behind, timings) in means.items():
        print(_row("all", width, behind, timings))
    (behind, timings), (wide_behind, wide_timings) = means[NEAR], means[DEVIATIONS]
    return 0 if behind <= wide_behind + GOAL_BEHIND and timings <= GOAL_TIMINGS * wide_timings else 1


def _row(title: str, width: float, behind: float, timings: float) -> str:
    return f"{title:36} within {width:.1f}: {timings:4.1f} timings, behind by {behind:.2%}"


def race(kind: Kind, width: float, batches: int) -> tuple[float, float]:
    """How far the leader is behind the fastest, as a logarithm, and the timings of the races; means."""
    chance, behind, timings = random.Random(0), [], []
    for seed in range(batches):
        true_ms = {str(number): chance.uniform(1.0, kind.slowest) for number in range(kind.schedules)}
        raced_ms, taken = _raced_ms(true_ms, kind.known, width, seed)
        best = min(raced_ms, key=raced_ms.__getitem__, default=None)
        leads_ms = kind.known if best is None or raced_ms[best] >= kind.known else true_ms[best]
        behind.append(math.log(leads_ms / min(kind.known, *true_ms.values())))
        timings.append(taken)
    return statistics.mean(behind), statistics.mean(timings)


def _raced_ms(true_ms: Mapping[str, float], known_ms: float, width: float, seed: int) -> tuple[dict[str, float], int]:
    """What a race says of those that are in it, and how many timings it takes."""
    chance, taken = random.Random(f"{seed}"), 0

    def timed(symbol: str) -> Measured:
        one = measured(true_ms[symbol] * math.exp(chance.gauss(0, PROCESS_NOISE)))
        return replace(one, candidate=replace(one.candidate, symbol=symbol), is_relative=True)

    course = LeaderRace([timed(symbol) for symbol in true_ms], known_ms, seed, width)
    while turn := course.next_turn():
        for symbol in turn:
            course.add(symbol, timed(symbol))
        taken += len(turn)
    return {symbol: time_ms for symbol, (time_ms, _) in course.settled().items()}, taken


if __name__ == "__main__":
    sys.exit(main())
