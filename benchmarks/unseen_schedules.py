"""How well models order schedules that they have not seen, once 64 of a pipeline were timed.

    sdk autotune examples/corner_detector.cpp --target x86-64 --technique sampling --budget 2m -b runs/corner_detector
    python -m benchmarks.unseen_schedules runs/*

Of each run's first pipeline, 64 of the schedules of Halide's search are learnt from and the others predicted, five
times. `halide` is Halide's network with its own weights, `trained` the same after training on the 64 as a run trains
it; `schedule` is the Gaussian process over what schedules say, `nest` that over loop nests, `lowered` the same with
what random programs teach, `trees` boosted trees over both, `tree_gru` networks that walk loops, with both, and
`ensemble` `schedule`, `lowered` and `tree_gru` together. Printed: the share of pairs in order, and the best of the
model's first 8 over the best of all, medians. The goal is that `ensemble` orders 5 points more pairs than `trained` in
five of seven pipelines. The generators must be where they were.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.foreseen_schedules import Known, known_schedules
from benchmarks.simulated_clock_ranking import Bench, open_bench
from halide_autotune.autotune_loop.cost_model.process.model_process import tensorflow_environment
from halide_autotune.autotune_loop.cost_model.ranking import best_in_top, ordered_pairs
from halide_autotune.autotune_loop.cost_model.tree_gru.training import train_tree_gru
from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.search.models.expectation import mean_of
from halide_autotune.autotune_loop.search.models.model import ENSEMBLE, ENSEMBLE_OF_NESTS, LOWERED, TREE_GRU, TREES
from halide_autotune.autotune_loop.search.models.nest_models import nest_model
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior, read_prior
from halide_autotune.autotune_loop.search.models.schedule_model import ScheduleModel
from halide_autotune.autotune_loop.specification.options import LearnOptions
from halide_autotune.autotune_loop.specification.tuning_task import sample_file_name
from halide_autotune.autotune_loop.store.sample_file import Sample, read_sample
from halide_autotune.sdk.output import silent_stderr
from halide_autotune.sdk.settings import export_variables
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.weights.baseline import baseline_weights

_LEARNT, _FEWEST_UNSEEN, _SPLITS = 64, 20, 5
_MARGIN, GOAL = 0.05, 5 / 7


@dataclass(frozen=True)
class Timed:
    """A schedule of Halide's search, as Halide's network sees it, and the other models."""

    sample: Sample
    known: Known

    @property
    def time_ms(self) -> float:
        return self.known.measured.median_ms


def main() -> int:
    """Print a row for each run; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_FOLDER")
    bench, prior = open_bench(), read_prior()
    assert prior is not None, "the shipped one has today's features"
    with silent_stderr():
        export_variables(tensorflow_environment({}, len(os.sched_getaffinity(0))))
    gains = []
    for folder in parser.parse_args().runs:
        timed, cores = _timed(folder, bench)
        if len(timed) < _LEARNT + _FEWEST_UNSEEN:
            print(f"{folder.name}: {len(timed)} schedules of Halide's search are too few", flush=True)
            continue
        scores = [_scores(timed, cores, prior, seed) for seed in range(_SPLITS)]
        figures = {model: np.median([each[model] for each in scores], axis=0) for model in scores[0]}
        gains.append(float(figures[ENSEMBLE][0] - figures["trained"][0]))
        told = "  ".join(f"{model} {order:.1%} {best:.2f}" for model, (order, best) in figures.items())
        print(f"{folder.name:20}{len(timed):5}  {told}", flush=True)
    reached = statistics.mean(gain >= _MARGIN for gain in gains) if gains else 0.0
    print(f"{_MARGIN:.0%} more pairs than the trained network: in {reached:.0%} of {len(gains)} pipelines")
    return 0 if reached >= GOAL else 1


def _timed(folder: Path, bench: Bench) -> tuple[list[Timed], int]:
    record = read_recorded_run(folder).record
    name, found = sample_file_name(record.spec.tasks), []
    for known in known_schedules(folder, bench):
        path = folder / "samples" / known.measured.candidate.sample / f"{name}.sample"
        if known.measured.candidate.has_features and path.is_file():
            found.append(Timed(read_sample(path), known))
    return found, record.spec.parallelism


def _scores(timed: Sequence[Timed], cores: int, prior: NestPrior, seed: int) -> Mapping[str, tuple[float, float]]:
    order = np.random.default_rng(seed).permutation(len(timed))
    learnt, unseen = ([timed[place] for place in places] for places in (order[:_LEARNT], order[_LEARNT:]))
    nests, times_ms = [one.known.lowered for one in learnt], [one.time_ms for one in learnt]
    asked = [one.known.lowered for one in unseen]
    by_schedule = ScheduleModel([one.known.features for one in learnt], times_ms)
    expected = {
        "schedule": by_schedule.expectation([one.known.features for one in unseen]),
        "nest": nest_model(LOWERED)(nests, times_ms, None).expectation(asked),
    }
    for name in (LOWERED, TREES, TREE_GRU):
        expected[name] = nest_model(name, train_tree_gru)(nests, times_ms, prior).expectation(asked)
    expected[ENSEMBLE] = mean_of([expected[name] for name in ("schedule", *ENSEMBLE_OF_NESTS)])
    networks = _networks([one.sample for one in learnt], [one.sample for one in unseen], cores, seed)
    predicted = {**networks, **{model: each.means for model, each in expected.items()}}
    times = np.array([one.time_ms for one in unseen])
    return {model: _score(each, times) for model, each in predicted.items()}


def _networks(learnt: Sequence[Sample], unseen: Sequence[Sample], cores: int, seed: int) -> Mapping[str, Array]:
    """Halide's network with its own weights, and trained as in a run."""
    from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
    from halide_autotune.autotune_loop.cost_model.training import train

    own = baseline_weights(find_halide_install().plugin_path("Adams2019"))
    report = train(own, learnt, LearnOptions(), cores, seed)
    featurizations = [one.featurization for one in unseen]
    models = {"halide": own, "trained": report.weights or own}
    return {
        name: np.asarray(CostModel(weights, cores).predict(featurizations), dtype=np.float64)
        for name, weights in models.items()
    }


def _score(predicted: Array, times_ms: Array) -> tuple[float, float]:
    right, pairs = ordered_pairs(predicted, times_ms)
    return right / max(1, pairs), best_in_top(predicted, times_ms, 8) or float("nan")


if __name__ == "__main__":
    sys.exit(main())
