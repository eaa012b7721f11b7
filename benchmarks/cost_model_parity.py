"""Do our predictions equal the plug-in's? Random schedules of several pipelines, at two core counts.

    python -m benchmarks.cost_model_parity

The plug-in prints 6 digits, so a relative error of 5e-6 is its own rounding.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from autotune_loop.cost_model.cost_model import CostModel
from autotune_loop.featurization import read_featurization
from benchmarks.random_schedules import RandomSchedule, sample_schedules
from benchmarks.schedule_pipelines import pipelines
from targets.halide_install import find_halide_install
from weights.baseline import baseline_weights
from weights.perturb import perturb_weights
from weights.weights_file import Weights, write_weights

CORE_COUNTS = (2, 32)
LARGEST_ERROR = 2e-5


def relative_errors(schedules: tuple[RandomSchedule, ...], weights: Weights, num_cores: int) -> list[float]:
    """|ours / the plug-in's - 1| of each schedule."""
    featurizations = [read_featurization(schedule.featurization_path) for schedule in schedules]
    predictions_ms = CostModel(weights, num_cores).predict(featurizations)
    return [
        abs(float(prediction_ms) / schedule.plugin_cost_ms - 1)
        for prediction_ms, schedule in zip(predictions_ms, schedules, strict=True)
    ]


def main() -> int:
    """Print the worst error for each pipeline; exit code 1 if one is beyond 2e-5."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=30, help="for each pipeline, core count and weights")
    count = parser.parse_args().schedules
    baseline = baseline_weights(find_halide_install().plugin_path("Adams2019"))
    worst, total, distinct = 0.0, 0, set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for pipeline in pipelines():
            errors = []
            for num_cores in CORE_COUNTS:
                for label, weights in (
                    ("baseline", baseline),
                    ("perturbed", perturb_weights(baseline, 0.2, 1)),
                ):
                    weights_path = folder / f"{label}.weights"
                    write_weights(weights, weights_path)
                    place = folder / pipeline / label / str(num_cores)
                    log = sample_schedules(
                        pipeline, range(count), num_cores, place, os.environ, weights_path=weights_path
                    )
                    errors += relative_errors(log.schedules, weights, num_cores)
                    for schedule in log.schedules:
                        distinct.add(read_featurization(schedule.featurization_path).schedule_sha256)
            print(f"{pipeline:10} {len(errors):4} schedules, worst relative error {max(errors):.1e}", flush=True)
            worst, total = max(worst, *errors), total + len(errors)
    print(f"{'all':10} {total:4} schedules ({len(distinct)} distinct), worst relative error {worst:.1e}")
    return 0 if worst <= LARGEST_ERROR else 1


if __name__ == "__main__":
    sys.exit(main())
