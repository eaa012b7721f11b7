"""How soon runs with each model of schedules are as good as the best of them all, in seconds and in schedules.

    python -m benchmarks.models_in_runs FOLDER/apps/harris/harris_generator.cpp:harris ... --budget-s 90 --seeds 2

Each generator is tuned from scratch, its own schedule unseen and without a history, once for each model and seed, one
run after the other on a quiet machine. Printed for each run: its best over the best of all runs of the generator, as
the rounds have timed them, and when it came within 5 % of that; at the end for each model the medians, and in how many
runs it never came so far (which counts as the whole budget).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import sdk
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.search.models.model import GAUSSIAN_PROCESS, LOWERED
from halide_autotune.autotune_loop.specification.options import SearchOptions

_AS_GOOD = 1.05
# When each schedule was timed, in seconds from the run's begin, and the best until then.
Curve = list[tuple[float, float]]


def main() -> int:
    """Print a row for each run, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generators", nargs="+")
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--budget-s", type=float, default=90.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--models", nargs="+", default=[LOWERED, GAUSSIAN_PROCESS], metavar="MODEL[/ACQUISITION]")
    arguments = parser.parse_args()
    after_s: dict[str, list[float]] = {model: [] for model in arguments.models}
    losses: dict[str, list[float]] = {model: [] for model in arguments.models}
    never = dict.fromkeys(arguments.models, 0)
    print(f"{'generator':20}{'model':>28}{'seed':>6}{'timed':>7}{'best':>8}{'after s':>9}{'schedules':>11}", flush=True)
    for generator in arguments.generators:
        curves = {
            (model, seed): _curve(generator, model, seed, arguments)
            for seed in range(arguments.seeds)
            for model in arguments.models
        }
        best_ms = min(curve[-1][1] for curve in curves.values())
        for (model, seed), curve in curves.items():
            reached = next(
                ((place, at_s) for place, (at_s, ms) in enumerate(curve, 1) if ms <= _AS_GOOD * best_ms), None
            )
            losses[model].append(curve[-1][1] / best_ms)
            after_s[model].append(arguments.budget_s if reached is None else reached[1])
            never[model] += reached is None
            told = ("never", "–") if reached is None else (f"{reached[1]:.0f}", str(reached[0]))
            name = generator.rpartition(":")[2].rpartition("/")[2]
            row = f"{name:20}{model:>28}{seed:6}{len(curve):7}{curve[-1][1] / best_ms:8.3f}"
            print(f"{row}{told[0]:>9}{told[1]:>11}", flush=True)
    for model in arguments.models:
        print(f"{model}: {_told(losses[model], after_s[model], never[model])}")
    return 0


def _curve(generator: str, model: str, seed: int, arguments: argparse.Namespace) -> Curve:
    name, _, acquisition = model.partition("/")
    with tempfile.TemporaryDirectory(prefix="models-in-runs-") as text:
        folder = Path(text) / "run"
        options = sdk.RunOptions.of(
            model=name,
            acquisition=acquisition or SearchOptions().acquisition,
            seed=seed,
            budget_s=arguments.budget_s,
            no_history=True,
            ignore_own_schedule=True,
        )
        sdk.autotune(sdk.GeneratorSpec(generator), target=arguments.target, run_folder=folder, options=options)
        run = read_recorded_run(folder)
    curve: Curve = []
    for sample in run.samples:
        best_ms = min(sample.median_ms, curve[-1][1] if curve else sample.median_ms)
        curve.append((sample.at_unix_s - run.start_unix_s, best_ms))
    return curve


def _told(losses: Sequence[float], after_s: Sequence[float], never: int) -> str:
    best = f"best {statistics.median(losses):.3f} [{min(losses):.3f}, {max(losses):.3f}] of the best of all"
    return f"{best}, as good after {statistics.median(after_s):.0f} s, never in {never} of {len(losses)} runs"


if __name__ == "__main__":
    sys.exit(main())
