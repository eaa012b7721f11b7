"""How far first timings of recorded runs are off, as they were and if they had ended sooner.

    python -m benchmarks.timing_precision RUN_FOLDER ...

A run records each repetition. Of each schedule that was timed again beside the same yardstick, in at least two further
processes, the mean of those counts as its ratio to the yardstick. Printed for each precision: how far the ratio that
its first timing says is off (root of the mean square, and a robust standard deviation, of the logarithm), and how long
that timing's calls took, as its repetitions would have ended; the goal is that those of the precision that runs use are
off by at most a tenth more than those of half of that. Disturbed pairs do not count. In runs that were recorded with a
coarser precision nothing finer can be seen.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.store.read_database import read_database
from halide_autotune.autotune_loop.store.schema import CANDIDATE_PURPOSES

_TIMINGS_SQL = (
    "SELECT symbol, purpose, repetitions_s, disturbed, beside FROM measurements"
    f" WHERE beside <> '' AND purpose IN {CANDIDATE_PURPOSES} ORDER BY rowid"
)
# As a run times: from so many pairs and this long on, until that long.
_LEAST_PAIRS, _LEAST_S, _MOST_S = 5, 0.05, 0.3
# A kernel that takes less is called once more before each repetition.
_LONGEST_SETTLED_S = 0.02
PRECISIONS, USED, GOAL = (0.01, 0.02, 0.03), 0.02, 1.1


@dataclass(frozen=True)
class Pair:
    """A repetition: the logarithm of the ratio, the seconds that all its calls took, and whether it counts."""

    log_ratio: float
    took_s: float
    counts: bool


def main() -> int:
    """Print a row for each precision; exit code 1 if what runs use misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_FOLDER")
    timings = [each for run in parser.parse_args().runs for each in first_timings(run)]
    if not timings:
        parser.error("no schedule of these runs was timed again in two more processes beside the same yardstick")
    print(f"{len(timings)} schedules")
    off = {}
    for precision in PRECISIONS:
        kept = [(until_precise(pairs, precision), truth) for pairs, truth in timings]
        errors = [ratio_of(pairs) - truth for pairs, truth in kept]
        took_s = statistics.mean(sum(pair.took_s for pair in pairs) for pairs, _ in kept)
        off[precision] = math.sqrt(statistics.mean(error**2 for error in errors))
        robust = 1.4826 * statistics.median(map(abs, errors))
        print(f"to {100 * precision:.0f} %: off by {off[precision]:.3f} (robust {robust:.3f}), {took_s:.3f} s")
    return 0 if off[USED] <= GOAL * off[USED / 2] else 1


def first_timings(run: Path) -> Iterator[tuple[list[Pair], float]]:
    """The first timing of each schedule that was timed again, with the mean of those timings' logarithms."""
    timings: dict[tuple[str, str], dict[bool, list[list[Pair]]]] = {}
    rows = read_database(run / "tuning.db", lambda database: database.execute(_TIMINGS_SQL).fetchall())
    for symbol, purpose, times_s, disturbed, beside in rows:
        other = json.loads(beside)
        pairs = [*map(pair_of, json.loads(times_s), other["repetitions_s"], json.loads(disturbed), other["disturbed"])]
        of_one = timings.setdefault((symbol, other["kernel"]), {True: [], False: []})
        of_one[purpose == "sample"].append(pairs)
    for of_one in timings.values():
        again = of_one[False]
        if of_one[True] and len(again) >= 2:
            yield of_one[True][0], statistics.mean(map(ratio_of, again))


def pair_of(kernel_s: float, beside_s: float, is_disturbed: bool, is_other_disturbed: bool) -> Pair:
    """A repetition of both kernels."""
    calls = sum(time_s * (2 if time_s < _LONGEST_SETTLED_S else 1) for time_s in (kernel_s, beside_s))
    return Pair(math.log(kernel_s / beside_s), calls, not (is_disturbed or is_other_disturbed))


def ratio_of(pairs: Sequence[Pair]) -> float:
    """The logarithm of the ratio that they say: the median of those that count, else of all."""
    return statistics.median([pair.log_ratio for pair in pairs if pair.counts] or [pair.log_ratio for pair in pairs])


def until_precise(pairs: Sequence[Pair], precision: float) -> Sequence[Pair]:
    """Those after which the ratio is known so well, as `targets/build/runner/timing.c` reckons, or the time is over."""
    took_s, counted = 0.0, list[float]()
    for number, pair in enumerate(pairs, start=1):
        took_s += pair.took_s
        counted += [pair.log_ratio] if pair.counts else []
        if took_s >= _LEAST_S and len(counted) >= max(_LEAST_PAIRS, 2 * number / 3):
            middle = statistics.median(counted)
            deviation = 1.2533 * 1.4826 * statistics.median(abs(one - middle) for one in counted)
            if deviation <= precision * math.sqrt(len(counted)):
                return pairs[:number]
        if took_s >= _MOST_S:
            return pairs[:number]
    return pairs


if __name__ == "__main__":
    sys.exit(main())
