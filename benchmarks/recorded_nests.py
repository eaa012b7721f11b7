"""The loop nests of the schedules that a run has timed: as the run kept them, or lowered now."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.simulated_clock_ranking import Bench
from halide_autotune.autotune_loop.candidate import Measured
from halide_autotune.autotune_loop.lowered.features import NestFeatures, features_of_nest
from halide_autotune.autotune_loop.lowered.lowered_file import pack_lowered, read_lowered
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask, sample_file_name
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.lowering.loop_nest import LoopNest
from halide_autotune.targets.lowering.lower import lower_schedules
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.target_features import kernel_target
from halide_autotune.targets.schedule.header import read_schedule

_LIMITS, _LIMIT_S = ProcessLimits(time_s=1800.0, memory_bytes=8 * 2**30), 60.0


@dataclass(frozen=True)
class RecordedNests:
    """What a run has timed of one pipeline.

    Attributes:
        samples: with a loop nest, in the order of timing.
        nests, times_ms: of each.
    """

    name: str
    samples: tuple[Measured, ...]
    nests: tuple[NestFeatures, ...]
    times_ms: tuple[float, ...]


@contextlib.contextmanager
def opened_task(task: TuningTask, bench: Bench) -> Iterator[tuple[Inspected, PipelinePreparation]]:
    """The generator of a recorded task, and what is done to its pipeline first."""
    program = open_generator(task.reference, bench.halide, bench.compiler, bench.environment)
    with contextlib.closing(program):
        target = kernel_target(bench.profile.halide_target)
        inspected = Inspected(program, task.generator_name, task.parameters, target, _LIMITS)
        yield inspected, PipelinePreparation(build_preparation_plugin(bench.compiler), task.estimates)


def recorded_nests(folder: Path, bench: Bench) -> list[RecordedNests]:
    """Of each pipeline of a run. What is lowered now is kept in the run's folder; the generators must be there."""
    run = read_recorded_run(folder)
    tasks = run.record.spec.tasks
    name, cores = sample_file_name(tasks), run.record.spec.parallelism
    found = []
    for index, task in enumerate(tasks):
        samples = [one for one in run.samples if one.candidate.task_index == index]
        folders = [folder / "samples" / one.candidate.sample for one in samples]
        kept = {each: _kept(each / f"{name}.lowered") for each in folders}
        kept.update(_lower([each for each in folders if kept[each] is None], name, task, bench))
        nests = [kept[each] for each in folders]
        known = [(one, nest) for one, nest in zip(samples, nests, strict=True) if nest is not None]
        if known:
            features = tuple(features_of_nest(nest, cores) for _, nest in known)
            times_ms = tuple(one.median_ms for one, _ in known)
            parameters = ",".join(f"{key}={value}" for key, value in task.parameters.items())
            title = " ".join(filter(None, (task.generator_name, parameters)))
            found.append(RecordedNests(title, tuple(one for one, _ in known), features, times_ms))
    return found


def schedules_of(folder: Path) -> list[str]:
    """The schedules that a run has timed of its first pipeline, as JSON."""
    run = read_recorded_run(folder)
    header = f"{sample_file_name(run.record.spec.tasks)}.schedule.h"
    samples = [one.candidate.sample for one in run.samples if one.candidate.task_index == 0]
    texts = [_schedule(folder / "samples" / sample / header) for sample in samples]
    return [text for text in texts if text is not None]


def _kept(path: Path) -> LoopNest | None:
    try:
        return read_lowered(path)
    except (FileNotFoundError, GeneratorError):
        return None


def _lower(folders: Sequence[Path], name: str, task: TuningTask, bench: Bench) -> dict[Path, LoopNest]:
    """By folder; each is kept there."""
    texts = {each: text for each in folders if (text := _schedule(each / f"{name}.schedule.h")) is not None}
    if not texts:
        return {}
    with opened_task(task, bench) as (inspected, preparation):
        lowered = lower_schedules(inspected, preparation, [*texts.values()], _LIMIT_S, bench.compiler)
    if isinstance(lowered, GeneratorFailure):
        print(lowered.message, file=sys.stderr)
        return {}
    nests = {each: nest for each, nest in zip(texts, lowered.nests, strict=True) if isinstance(nest, LoopNest)}
    for each, nest in nests.items():
        write_atomically(each / f"{name}.lowered", pack_lowered(nest))
    return nests


def _schedule(header: Path) -> str | None:
    """None for what cannot be read as data, such as a schedule of the generator's own."""
    try:
        return print_json(parse_schedule(read_schedule(header)))
    except (OSError, KeyError, ValueError, GeneratorError):
        return None
