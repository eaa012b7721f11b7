"""Do our predictions equal the plug-in's? Random schedules of several pipelines, at several core counts.

    python -m benchmarks.cost_model_parity
    python -m benchmarks.cost_model_parity --autoscheduler Anderson2021 [--generator app_generator.cpp …]

Adams2019 searches the small pipelines, for this machine; Anderson2021 the C++ generators in `examples/` and those
named, for three GPUs that need not be there. Adams2019 prints 6 digits, so a relative error of 5e-6 is its own
rounding; Anderson2021 prints 6 decimals, so that of a cost of 0.01 ms is 5e-5.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.random_gpu_schedules import build_generator, sample_gpu_schedules
from benchmarks.random_schedules import CHECKOUT, SearchLog, sample_schedules
from benchmarks.schedule_pipelines import pipelines
from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.store.featurization import Featurization, read_featurization
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights, write_weights

CORE_COUNTS = (2, 32)
GPUS = ((40, 75), (108, 80), (46, 86))  # streaming multiprocessors and compute capability: T4, A100, RTX 3070
LARGEST_ERRORS = {Network.ADAMS2019: 2e-5, Network.ANDERSON2021: 1e-4}


@dataclass(frozen=True)
class Search:
    """One pipeline for one machine; `sample(folder, weights_path=…)` searches its schedules."""

    pipeline: str
    num_cores: int
    sample: Callable[..., SearchLog]


def adams2019_searches(count: int) -> Iterator[Search]:
    """The small pipelines at two core counts."""
    for pipeline in pipelines():
        for num_cores in CORE_COUNTS:
            sample = partial(sample_schedules, pipeline, range(count), num_cores, environment=os.environ)
            yield Search(pipeline, num_cores, sample)


def anderson2021_searches(count: int, sources: Sequence[Path]) -> Iterator[Search]:
    """The examples and further generators, for each of the GPUs."""
    for source in [*sorted((CHECKOUT / "examples").glob("*.cpp")), *sources]:
        generator = build_generator(source, read_settings().cache_folder, os.environ)
        for num_cores, capability in GPUS:
            target = f"x86-64-linux-cuda-cuda_capability_{capability}"
            sample = partial(sample_gpu_schedules, generator, range(count), num_cores, target, environment=os.environ)
            yield Search(source.stem, num_cores, sample)


def relative_errors(
    log: SearchLog, featurizations: Sequence[Featurization], weights: Weights, num_cores: int
) -> list[float]:
    """|ours / the plug-in's - 1| of each schedule."""
    predictions_ms = CostModel(weights, num_cores).predict(featurizations)
    return [
        abs(float(prediction_ms) / schedule.plugin_cost_ms - 1)
        for prediction_ms, schedule in zip(predictions_ms, log.schedules, strict=True)
    ]


def main() -> int:
    """Print the worst error for each pipeline; exit code 1 if one is beyond the print's rounding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--autoscheduler", type=Network, choices=list(Network), default=Network.ADAMS2019)
    parser.add_argument("--schedules", type=int, default=30, help="for each pipeline, machine and weights")
    parser.add_argument("--generator", type=Path, nargs="*", default=[], help="further C++ generators, for a GPU")
    arguments = parser.parse_args()
    network: Network = arguments.autoscheduler
    if network is Network.ADAMS2019:
        searches = adams2019_searches(arguments.schedules)
    else:
        searches = anderson2021_searches(arguments.schedules, arguments.generator)
    baseline = baseline_weights(find_halide_install().plugin_path(network))
    choices = {"baseline": baseline, "perturbed": perturb_weights(baseline, 0.2, 1)}
    total = 0
    distinct: set[Any] = set()
    worst: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for index, search in enumerate(searches):
            for label, weights in choices.items():
                weights_path = folder / f"{label}.weights"
                write_weights(weights, weights_path)
                log = search.sample(folder=folder / str(index) / label, weights_path=weights_path)
                featurizations = [read_featurization(found.featurization_path, network) for found in log.schedules]
                errors = relative_errors(log, featurizations, weights, search.num_cores)
                distinct.update(featurization.schedule_sha256 for featurization in featurizations)
                total += len(errors)
                worst[search.pipeline] = max(worst.get(search.pipeline, 0.0), *errors)
                what = f"{search.pipeline:20} {search.num_cores:4} cores, {label:9}"
                print(f"{what} {len(errors):4} schedules, worst relative error {max(errors):.1e}", flush=True)
    overall = max(worst.values())
    print(f"{len(worst)} pipelines, {total} schedules ({len(distinct)} distinct), worst relative error {overall:.1e}")
    return 0 if overall <= LARGEST_ERRORS[network] else 1


if __name__ == "__main__":
    sys.exit(main())
