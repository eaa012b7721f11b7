"""What a history of other shapes is worth: ResNet-18's C7 to C12 after C1 to C6, against twice the time from scratch.

    python -m benchmarks.network_transfer [--budget-s 600] [--target x86-64]

C7 to C12 are tuned from scratch for the budget; then C1 to C6 for the budget, which become the history, with which C7
to C12 are tuned for half of it. The generators' own schedules, with which either would begin near its end, are left
out. Printed: each one's time after both runs, as their play-offs settled them; and when each run had come within 5 % of
the first one's sum, by what was timed in the rounds. The goal is as fast after half of the time, within 2 %.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import sdk
from halide_autotune.autotune_loop.network.models import LISTS
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.settings import Settings, read_settings

_TABLE = "[[convolution]]"
_AS_GOOD, _NEARLY = 1.02, 1.05


def main() -> int:
    """Print both runs' times; exit code 1 if the history does not save half of the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget-s", type=float, default=600.0)
    parser.add_argument("--target", default="x86-64")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="network-transfer-") as text:
        folder = Path(text)
        settings = replace(read_settings(), config_folder=folder / "config")
        comment, *tables = LISTS["resnet18-convolutions"].read_text(encoding="utf-8").split(_TABLE)
        lists = {name: folder / f"{name}.toml" for name in ("first", "second")}
        for path, part in zip(lists.values(), (tables[:6], tables[6:]), strict=True):
            path.write_text(comment + "".join(_TABLE + each for each in part), encoding="utf-8")
        options = RunOptions.of(target=arguments.target, budget_s=arguments.budget_s, ignore_own_schedule=True)
        scratch = _tuned(lists["second"], folder / "scratch", options.with_values({"no_history": True}), settings)
        _tuned(lists["first"], folder / "history", options, settings)
        half_s = arguments.budget_s / 2
        after = _tuned(lists["second"], folder / "after", options.with_values({"budget_s": half_s}), settings)
        print(f"{'':8}{'scratch ms':>12}{'history ms':>12}{'ratio':>8}")
        for name in scratch:
            print(f"{name:8}{scratch[name]:12.3f}{after[name]:12.3f}{scratch[name] / after[name]:8.2f}")
        wanted_ms = _NEARLY * _sums(folder / "scratch")[-1][1]
        reached = {name: _reached_s(_sums(folder / name), wanted_ms) for name in ("scratch", "after")}
    mean = math.exp(statistics.fmean(math.log(scratch[name] / after[name]) for name in scratch))
    print(f"after half of the time {mean:.2f} times as fast in geometric mean as from scratch after all of it;")
    print(f"within 5 % of that after {reached['after']:.0f} s, and from scratch after {reached['scratch']:.0f} s")
    return 0 if mean * _AS_GOOD >= 1.0 else 1


def _tuned(model: Path, run: Path, options: RunOptions, settings: Settings) -> dict[str, float]:
    found = sdk.tune_network(str(model), options=options, run_folder=run, settings=settings)
    return {each.task.places[0][0]: each.tuned_ms or math.nan for each in found.operators}


def _sums(run: Path) -> list[tuple[float, float]]:
    """Seconds since the start, and the sum of the best times of all operators until then, once each has one."""
    read = read_recorded_run(run)
    best_ms: dict[int, float] = {}
    sums = []
    for sample in read.samples:
        best_ms[sample.candidate.task_index] = min(sample.median_ms, best_ms.get(sample.candidate.task_index, math.inf))
        if len(best_ms) == len(read.record.spec.tasks):
            sums.append((sample.at_unix_s - read.start_unix_s, sum(best_ms.values())))
    return sums


def _reached_s(sums: list[tuple[float, float]], wanted_ms: float) -> float:
    return next((at_s for at_s, sum_ms in sums if sum_ms <= wanted_ms), math.inf)


if __name__ == "__main__":
    sys.exit(main())
