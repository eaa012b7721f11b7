"""The loop nests of the schedules that a run has timed: as the run kept them, or lowered now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.simulated_clock_ranking import Bench
from halide_autotune.autotune_loop.candidate import Measured
from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule, lowered_schedule
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.specification.tuning_task import sample_file_name
from halide_autotune.autotune_loop.training.lowered_samples import lower_samples, schedule_json


@dataclass(frozen=True)
class RecordedNests:
    """What a run has timed of one pipeline.

    Attributes:
        samples: with a loop nest, in the order of timing.
        lowered, times_ms: of each what it is lowered to, and its time.
    """

    name: str
    samples: tuple[Measured, ...]
    lowered: tuple[LoweredSchedule, ...]
    times_ms: tuple[float, ...]

    @property
    def nests(self) -> tuple[NestFeatures, ...]:
        """The features of their loop nests."""
        return tuple(each.features for each in self.lowered)


def recorded_nests(folder: Path, bench: Bench) -> list[RecordedNests]:
    """Of each pipeline of a run. What is lowered now is kept in the run's folder; the generators must be there."""
    run = read_recorded_run(folder)
    tasks, cores = run.record.spec.tasks, run.record.spec.parallelism
    found = []
    for index, task in enumerate(tasks):
        kept = lower_samples(run, index, bench.lowering_tools)
        samples = [one for one in run.samples if one.candidate.task_index == index]
        known = [(one, nest) for one in samples if (nest := kept.get(folder / "samples" / one.candidate.sample))]
        if known:
            lowered = tuple(lowered_schedule(nest, cores) for _, nest in known)
            times_ms = tuple(one.median_ms for one, _ in known)
            parameters = ",".join(f"{key}={value}" for key, value in task.parameters.items())
            title = " ".join(filter(None, (task.generator_name, parameters)))
            found.append(RecordedNests(title, tuple(one for one, _ in known), lowered, times_ms))
    return found


def schedules_of(folder: Path) -> list[str]:
    """The schedules that a run has timed of its first pipeline, as JSON."""
    run = read_recorded_run(folder)
    header = f"{sample_file_name(run.record.spec.tasks)}.schedule.h"
    samples = [one.candidate.sample for one in run.samples if one.candidate.task_index == 0]
    texts = [schedule_json(folder / "samples" / sample / header) for sample in samples]
    return [text for text in texts if text is not None]
