"""What `sdk suggest` is worth: schedules that nobody has timed, against what Halide's own search chooses.

    python -m benchmarks.suggested_schedules [--target x86-64] [--parameter NAME=VALUE] [GENERATOR ...]

Eight schedules are suggested for each generator, the examples by default, of which nothing was learnt. They are timed
in turns beside Adams2019's full beam search's, Mullapudi2016's and the generator's own, all for the cores that time
them. Printed: Adams2019's time over that of the first suggestion, of the best of eight, and of the others' choices, a
dash where one failed; and how long suggesting took. At the end the geometric means of what did not fail. For an
emulated target take pictures with --parameter width=256 --parameter height=192.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import sdk
from benchmarks.first_choice import EXAMPLES, GOALS, LEAST, OTHERS, PICTURES
from halide_autotune.sdk.select.device_choice import parallelism_here
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.profile.loader import load_profile

_PEERS = ("adams2019", "mullapudi2016", "own")
_COLUMNS = ("first", "best of 8", "mullapudi2016", "own")
_COUNT = 8


def main() -> int:
    """Print a row for each generator; exit code 1 if a goal is missed, or a first suggestion is much slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generators", nargs="*", metavar="GENERATOR")
    parser.add_argument("--target", default="x86-64", help="a profile that `sdk targets` lists")
    parser.add_argument("--parameter", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    profile = load_profile(arguments.target, read_settings().profile_folder)
    threads = parallelism_here(profile.device_kind, profile)
    options = sdk.RunOptions.of(target=profile.name, parallelism=threads)
    rows: list[tuple[float, ...]] = []
    print(f"{'generator':24}" + "".join(f"{title:>15}" for title in _COLUMNS) + f"{'suggested in':>15}", flush=True)
    for generator in arguments.generators or [str(EXAMPLES / f"{name}.cpp") for name in sorted((*PICTURES, *OTHERS))]:
        spec = sdk.GeneratorSpec(generator, tuple(arguments.parameter))
        ratios, took_s = _row(spec, options, arguments.turns)
        rows.append(ratios)
        print(f"{Path(generator).stem:24}" + "".join(map(_cell, ratios)) + f"{took_s:13.1f} s", flush=True)
    means = [_mean([row[place] for row in rows]) for place in range(len(_COLUMNS))]
    print(f"{'geometric mean':24}" + "".join(map(_cell, means)))
    is_met = all(mean >= goal for mean, goal in zip(means, GOALS, strict=False))
    slowest = min((row[0] for row in rows if not math.isnan(row[0])), default=0.0)
    return 0 if is_met and slowest >= LEAST else 1


def _row(spec: sdk.GeneratorSpec, options: sdk.RunOptions, turns: int) -> tuple[tuple[float, ...], float]:
    started_s = time.monotonic()
    suggested = sdk.suggest(spec, count=_COUNT, options=options)
    took_s = time.monotonic() - started_s
    with tempfile.TemporaryDirectory(prefix="suggested-") as folder:
        headers = [Path(folder) / f"{place}.schedule.h" for place in range(len(suggested.first))]
        for path, one in zip(headers, suggested.first, strict=True):
            path.write_text(one.header)
        compared = sdk.bench(spec, [*map(str, headers), *_PEERS], options=options, turns=turns)
    times_ms = {one.label: one.median_ms or math.nan for one in compared}
    adams_ms, mullapudi_ms, own_ms = (times_ms[peer] for peer in _PEERS)
    suggested_ms = [times_ms[str(path)] for path in headers]
    best_ms = min((each for each in suggested_ms if not math.isnan(each)), default=math.nan)
    return tuple(adams_ms / each for each in (suggested_ms[0], best_ms, mullapudi_ms, own_ms)), took_s


def _mean(ratios: Sequence[float]) -> float:
    known = [math.log(each) for each in ratios if not math.isnan(each)]
    return math.exp(statistics.fmean(known)) if known else math.nan


def _cell(ratio: float) -> str:
    return f"{'–':>15}" if math.isnan(ratio) else f"{ratio:15.2f}"


if __name__ == "__main__":
    sys.exit(main())
