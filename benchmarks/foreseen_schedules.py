"""How well models foresee a run's next batch, in runs that were recorded: of schedules, and of their loop nests.

    python -m benchmarks.foreseen_schedules RUN_FOLDER ...

For each batch with enough schedules that were made as data, each model is fitted to what was timed before, as in the
run, and predicts them: `schedule` knows what schedules say, `nest` what their loops do, `prior` also what random
programs say of such loops. Printed for each run, as means over its batches: Spearman's rank correlation of predicted
and timed; the share of pairs in order; and how often the batch's fastest is in the third that the model puts first
(goal for `prior`: in 60 % of the batches of all runs; by chance it is in a third). `first` is the second batch, which
is made before anything was timed: only the prior says something of it. The generators must be where they were.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.recorded_nests import recorded_nests
from benchmarks.simulated_clock_ranking import Bench, open_bench
from halide_autotune.autotune_loop.candidate import Measured, technique_of
from halide_autotune.autotune_loop.cost_model.ranking import ordered_pairs, spearman
from halide_autotune.autotune_loop.draft.features import features_of
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.search.models.nest_model import NestModel
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior, read_prior
from halide_autotune.autotune_loop.search.models.population_model import ENOUGH_TIMED
from halide_autotune.autotune_loop.search.models.schedule_model import Features, ScheduleModel
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask, sample_file_name
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.autotune_loop.training.lowered_samples import opened_task
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.pipeline.shape import describe_pipeline
from halide_autotune.targets.schedule.header import read_schedule

_SMALLEST_BATCH = 6
GOAL = 0.6


@dataclass(frozen=True)
class Known:
    """A schedule that was timed, as both models see it."""

    measured: Measured
    features: Features
    lowered: LoweredSchedule

    @property
    def nest(self) -> NestFeatures:
        """The features of its loop nest."""
        return self.lowered.features

    @property
    def is_child(self) -> bool:
        """Whether it was made by what chooses with a model."""
        return technique_of(self.measured.candidate.point) in (TechniqueName.EVOLUTION, TechniqueName.ANNEALING)


@dataclass(frozen=True)
class Foreseen:
    """A batch: the correlation, the share of pairs in order, and whether the model's first third has the best."""

    correlation: float
    in_order: float
    has_best: bool


Found = dict[str, list[Foreseen]]


def main() -> int:
    """Print rows for each run; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_FOLDER")
    bench, prior = open_bench(), read_prior()
    assert prior is not None, "the shipped one has today's features"
    of_all: Found = {}
    print(f"{'run':40}{'model':>10}{'batches':>9}{'correlation':>13}{'in order':>10}{'best in it':>12}")
    for folder in parser.parse_args().runs:
        found = foreseen(folder, bench, prior)
        _print(str(folder)[-38:], found)
        for model, batches in found.items():
            of_all.setdefault(model, []).extend(batches)
    if not of_all:
        print("No run has a batch that is large enough.", file=sys.stderr)
        return 1
    _print("all", of_all)
    return 0 if statistics.mean(one.has_best for one in of_all["prior"]) >= GOAL else 1


def foreseen(folder: Path, bench: Bench, prior: NestPrior) -> Found:
    """What the models say of the batches of a run's first pipeline."""
    known = known_schedules(folder, bench)
    found: Found = {}
    for index in sorted({one.measured.candidate.round_index for one in known}):
        before = [one for one in known if one.measured.candidate.round_index < index]
        batch = [one for one in known if one.measured.candidate.round_index == index and one.is_child]
        if len(batch) < _SMALLEST_BATCH:
            continue
        times_ms = np.array([one.measured.median_ms for one in batch])
        for model, predicted in _predictions(before, batch, prior).items():
            found.setdefault(model, []).append(_foreseen(predicted, times_ms))
    return found


def _predictions(before: Sequence[Known], batch: Sequence[Known], prior: NestPrior) -> Mapping[str, Array]:
    nests = [one.nest for one in batch]
    if len(before) < ENOUGH_TIMED:
        rows = np.array(nests)
        return {"first": prior.expected(rows, rows.mean(axis=0))}
    times_ms = [one.measured.median_ms for one in before]
    timed = [one.nest for one in before]
    by_schedule = ScheduleModel([one.features for one in before], times_ms)
    return {
        "schedule": by_schedule.predict([one.features for one in batch])[0],
        "nest": NestModel(timed, times_ms).expectation(nests).means,
        "prior": NestModel(timed, times_ms, prior).expectation(nests).means,
    }


def _foreseen(predicted: Array, times_ms: Array) -> Foreseen:
    first = np.argsort(predicted, kind="stable")[: len(times_ms) // 3]
    right, pairs = ordered_pairs(predicted, times_ms)
    return Foreseen(spearman(predicted, times_ms) or 0.0, right / max(1, pairs), int(times_ms.argmin()) in first)


def known_schedules(folder: Path, bench: Bench) -> list[Known]:
    """What a run has timed of its first pipeline, and both models can read."""
    tasks = read_recorded_run(folder).record.spec.tasks
    names, header = pipeline_names(tasks[0], bench), f"{sample_file_name(tasks)}.schedule.h"
    recorded = recorded_nests(folder, bench)
    known = []
    for measured, lowered in zip(recorded[0].samples, recorded[0].lowered, strict=True):
        features = _features(folder / "samples" / measured.candidate.sample / header, names)
        if features is not None:
            known.append(Known(measured, features, lowered))
    return known


def pipeline_names(task: TuningTask, bench: Bench) -> PipelineNames:
    """The names of a recorded pipeline, described anew."""
    with opened_task(task, bench.profile.halide_target, bench.lowering_tools) as (inspected, preparation):
        shape = describe_pipeline(inspected, preparation, bench.compiler)
    if isinstance(shape, GeneratorFailure):
        raise SystemExit(shape.message)
    return PipelineNames(shape)


def _features(header: Path, names: PipelineNames) -> Features | None:
    """None for a schedule that cannot be drafted, which the search leaves out, too."""
    try:
        draft = draft_of(parse_schedule(read_schedule(header)), names)
    except (OSError, KeyError, ValueError):
        return None
    return features_of(DraftStructure(draft, names))


def _print(name: str, found: Found) -> None:
    for model, batches in found.items():
        means = (
            statistics.mean(one.correlation for one in batches),
            statistics.mean(one.in_order for one in batches),
            statistics.mean(one.has_best for one in batches),
        )
        print(f"{name:40}{model:>10}{len(batches):9}{means[0]:13.2f}{means[1]:10.2f}{means[2]:12.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
