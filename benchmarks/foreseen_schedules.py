"""How well the model of a pipeline's schedules foresees those of the next batch, in runs that were recorded.

    python -m benchmarks.foreseen_schedules RUN_FOLDER ...

For each batch with enough schedules that were made as data, the model is fitted to what was timed before, as in the
run, and predicts them. Printed for each run, as means over its batches: Spearman's rank correlation of predicted and
timed; the median time of the third that the model puts first, as a share of the batch's median; and how often the
batch's fastest is in that third (goal: in half of the batches of all runs; by chance it is in a third). The generators
must be where they were.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.simulated_clock_ranking import Bench, open_bench
from halide_autotune.autotune_loop.candidate import Measured, technique_of
from halide_autotune.autotune_loop.cost_model.ranking import spearman
from halide_autotune.autotune_loop.draft.features import features_of
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.search.techniques.population_model import ENOUGH_TIMED
from halide_autotune.autotune_loop.search.techniques.schedule_model import Features, ScheduleModel
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask, sample_file_name
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.pipeline.shape import describe_pipeline
from halide_autotune.targets.profile.target_features import kernel_target
from halide_autotune.targets.schedule.header import read_schedule

_SMALLEST_BATCH = 6
GOAL = 0.5


@dataclass(frozen=True)
class Foreseen:
    """A batch: the correlation, the median of the model's first third over that of all, and whether it has the best."""

    correlation: float
    first_third: float
    has_best: bool


def main() -> int:
    """Print a row for each run; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_FOLDER")
    batches: list[Foreseen] = []
    bench = open_bench()
    print(f"{'run':40}{'batches':>8}{'correlation':>12}{'first third':>12}{'best in it':>11}")
    for folder in parser.parse_args().runs:
        found = foreseen(folder, bench)
        batches += found
        if found:
            print(_row(str(folder)[-38:], found), flush=True)
    if not batches:
        print("No run has a batch that is large enough.", file=sys.stderr)
        return 1
    print(_row("all", batches))
    return 0 if statistics.mean(one.has_best for one in batches) >= GOAL else 1


def foreseen(folder: Path, bench: Bench) -> list[Foreseen]:
    """What the model says of the batches of a run's first pipeline."""
    run = read_recorded_run(folder)
    tasks = run.record.spec.tasks
    names = _names(tasks[0], bench)
    header = f"{sample_file_name(tasks)}.schedule.h"
    samples = [one for one in run.samples if one.candidate.task_index == 0]
    features = [_features(folder / "samples" / one.candidate.sample / header, names) for one in samples]
    drafted = [(one, each) for one, each in zip(samples, features, strict=True) if each is not None]
    found = []
    for index in sorted({one.candidate.round_index for one in samples}):
        before = [each for each in drafted if each[0].candidate.round_index < index]
        batch = [each for each in drafted if each[0].candidate.round_index == index and _is_child(each[0])]
        if len(before) >= ENOUGH_TIMED and len(batch) >= _SMALLEST_BATCH:
            found.append(_foresee(before, batch))
    return found


def _is_child(one: Measured) -> bool:
    return technique_of(one.candidate.point) in (TechniqueName.EVOLUTION, TechniqueName.ANNEALING)


def _foresee(before: Sequence[tuple[Measured, Features]], batch: Sequence[tuple[Measured, Features]]) -> Foreseen:
    model = ScheduleModel([each for _, each in before], [one.median_ms for one, _ in before])
    predicted, times_ms = model.predict([each for _, each in batch])[0], np.array([one.median_ms for one, _ in batch])
    first = np.argsort(predicted)[: len(batch) // 3]
    share = float(np.median(times_ms[first]) / np.median(times_ms))
    return Foreseen(spearman(predicted, times_ms) or 0.0, share, int(times_ms.argmin()) in first)


def _names(task: TuningTask, bench: Bench) -> PipelineNames:
    program = open_generator(task.reference, bench.halide, bench.compiler, bench.environment)
    target = kernel_target(bench.profile.halide_target)
    inspected = Inspected(program, task.generator_name, task.parameters, target)
    shape = describe_pipeline(
        inspected, PipelinePreparation(build_preparation_plugin(bench.compiler), task.estimates), bench.compiler
    )
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


def _row(name: str, batches: Sequence[Foreseen]) -> str:
    return (
        f"{name:40}{len(batches):8}{statistics.mean(one.correlation for one in batches):12.2f}"
        f"{statistics.mean(one.first_third for one in batches):12.2f}"
        f"{statistics.mean(one.has_best for one in batches):11.2f}"
    )


if __name__ == "__main__":
    sys.exit(main())
