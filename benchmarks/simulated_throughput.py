"""What simulating several schedules at once gains: samples a minute of whole runs, one at a time and one for each core.

    python -m benchmarks.simulated_throughput examples/separable_filter.cpp --target arm64

Both runs have the same seed and as many rounds; building goes on beside the simulation in both. A run is measured from
its first search to its result, start-up included. Exit code 1 where several at once are slower.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from unittest.mock import patch

import sdk

BATCH_SIZE = 16


def main() -> int:
    """Run both in turns and print the ratio of their medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generator", nargs="?", default="examples/separable_filter.cpp")
    parser.add_argument("--target", default="arm64")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    counts = (1, len(os.sched_getaffinity(0)))
    results: dict[int, list[sdk.TuneResult]] = {count: [] for count in counts}
    for _ in range(arguments.turns):
        for count in counts:
            results[count].append(_run(arguments, count))
    rates = {
        count: sorted(60 * t.samples_timed / t.duration_s for t in (result.totals for result in results[count]))
        for count in counts
    }
    ratio = median(rates[counts[-1]]) / median(rates[1])
    if arguments.json:
        print(json.dumps({"ratio": ratio, "samples_per_minute": rates}, indent=2))
    else:
        for count in counts:
            _print(count, rates[count], results[count])
        print(f"ratio: {ratio:.2f}")
    return 0 if ratio >= 1 else 1


def _run(arguments: argparse.Namespace, count: int) -> sdk.TuneResult:
    with (
        tempfile.TemporaryDirectory(prefix="sdk-simulated-") as folder,
        patch("halide_autotune.sdk.select.clock_choice._programs_at_once", return_value=count),
    ):
        return sdk.autotune(
            sdk.GeneratorSpec(arguments.generator, tuple(arguments.param)),
            target=arguments.target,
            device="qemu",
            options=sdk.RunOptions.of(
                no_history=True, clock="simulated", rounds=arguments.rounds, weights="baseline", batch_size=BATCH_SIZE
            ),
            run_folder=Path(folder) / "run",
        )


def _print(count: int, rates: list[float], results: list[sdk.TuneResult]) -> None:
    simulating_s = median(result.totals.stages_s["measure"] for result in results)
    print(
        f"{count} at once: {median(rates):.1f} samples a minute [{rates[0]:.1f}, {rates[-1]:.1f}],"
        f" {simulating_s:.1f} s of each run with a batch on the emulator"
    )


if __name__ == "__main__":
    sys.exit(main())
