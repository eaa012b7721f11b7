"""How soon a run with the history of an equal pipeline is as good as one without, in seconds and in schedules.

    python -m benchmarks.history_start corner_detector image_pyramid --budget-s 60

Of each example two runs of equal length are made with other seeds: one without a history, whose schedules then become
it, and one that starts from them. The clock is simulated: both runs' times are on one scale, and nothing disturbs them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import sdk
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.sdk.project.history import keep_run, open_history
from halide_autotune.sdk.settings import Settings, read_settings

EXAMPLES = Path(__file__).parents[1] / "examples"
_AS_GOOD = 1.05


def main() -> int:
    """Print for each example when both runs came within 5 % of the best of the first one, and the best of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["corner_detector", "image_pyramid", "separable_filter"])
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--budget-s", type=float, default=60.0)
    arguments = parser.parse_args()
    print(f"{'example':20}{'run':>10}{'best ms':>10}{'as good after s':>17}{'schedules':>11}")
    for name in arguments.names:
        with tempfile.TemporaryDirectory(prefix="history-start-") as text:
            folder = Path(text)
            settings = replace(read_settings(), config_folder=folder / "config")
            curves = {}
            for seed, kind in enumerate(("without", "with")):
                run = folder / kind
                _tune(name, run, settings, arguments, seed=seed, no_history=kind == "without")
                curves[kind] = _curve(run)
                keep_run(run, open_history(settings))
            wanted_ms = _AS_GOOD * min(ms for _, ms in curves["without"])
            for kind, curve in curves.items():
                reached = next(((place, at_s) for place, (at_s, ms) in enumerate(curve, 1) if ms <= wanted_ms), None)
                after = ("never", "–") if reached is None else (f"{reached[1]:.0f}", str(reached[0]))
                best_ms = min(ms for _, ms in curve)
                print(f"{name:20}{kind:>10}{best_ms:>10.3f}{after[0]:>17}{after[1]:>11}", flush=True)
    return 0


def _tune(
    name: str, folder: Path, settings: Settings, arguments: argparse.Namespace, *, seed: int, no_history: bool
) -> None:
    sdk.autotune(
        str(EXAMPLES / f"{name}.cpp"),
        target=arguments.target,
        device="qemu",
        options=sdk.RunOptions.of(budget_s=arguments.budget_s, weights="baseline", seed=seed, no_history=no_history),
        run_folder=folder,
        settings=settings,
    )


def _curve(folder: Path) -> list[tuple[float, float]]:
    """Seconds since the start and the time of each schedule, in the order of timing."""
    run = read_recorded_run(folder)
    return [(sample.at_unix_s - run.start_unix_s, sample.median_ms) for sample in run.samples]


if __name__ == "__main__":
    sys.exit(main())
