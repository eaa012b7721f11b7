"""What it costs that Halide compiles loops in parts: the first sketches of a pipeline as they are, and with all parts.

    sdk autotune examples/camera_pipeline.py --target x86-64 --budget 1m -b runs/camera_pipeline
    python -m benchmarks.loops_in_parts runs/*

Sketches forbid parts, with and without boundary conditions, where these gain nothing; here Halide may make them
everywhere (`without`). Of each run's first pipeline, both kinds of the first sketches are compiled and then timed in
turns on this machine. Printed for each sketch: seconds to compile, both and the share; and the time of `without` over
that of the sketch, which is above 1 where the sketch is faster. The goal is less to compile, and schedules as fast
(at least 0.97 in geometric mean). The generators must be where they were.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import sdk
from benchmarks.foreseen_schedules import pipeline_names
from benchmarks.lowering_time import compiled_s
from benchmarks.simulated_clock_ranking import Bench, open_bench
from halide_autotune.autotune_loop.draft.model import Draft, Partitioning
from halide_autotune.autotune_loop.draft.partitioning import with_partitioning
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.sketches.sketches import sketches
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.training.lowered_samples import opened_task

_AS_FAST = 0.97
# A sketch as it is, and with all parts.
Pair = tuple[Schedule, Schedule]


def main() -> int:
    """Print a row for each sketch; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("--sketches", type=int, default=3, help="of each pipeline")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    bench, shares, gains = open_bench(), [], []
    print("pipeline, sketch | s | without | share | speed against without", flush=True)
    for folder in arguments.runs:
        record = read_recorded_run(folder).record
        task = record.spec.tasks[0]
        names = pipeline_names(task, bench)
        made = [*islice(sketches(names, record.spec.parallelism), arguments.sketches)]
        pairs = [
            (schedule_of(one.draft, names, "kernel"), schedule_of(_in_all_parts(one.draft), names, "kernel"))
            for one in made
        ]
        speeds, compiled = _speeds(task, pairs, arguments.turns), _compiled_s(task, pairs, bench)
        for one, (few_s, all_s), speed in zip(made, compiled, speeds, strict=True):
            shares.append(few_s / all_s)
            gains.append(speed)
            row = f"{folder.name}, {one.name} | {few_s:.2f} | {all_s:.2f} | {few_s / all_s:.2f} | {speed:.2f}"
            print(row, flush=True)
    share, gain = statistics.geometric_mean(shares), statistics.geometric_mean(gains)
    print(f"geometric mean | | | {share:.2f} | {gain:.2f}")
    return 0 if share < 1 and gain >= _AS_FAST else 1


def _in_all_parts(draft: Draft) -> Draft:
    for name, func in draft.funcs.items():
        stages = tuple(with_partitioning(stage, Partitioning.AUTO) for stage in func.stages)
        draft = draft.with_func(name, replace(func, stages=stages))
    return draft


def _compiled_s(task: TuningTask, pairs: Sequence[Pair], bench: Bench) -> list[tuple[float, float]]:
    """Seconds that both of each pair take."""
    with opened_task(task, bench.profile.halide_target, bench.lowering_tools) as (inspected, preparation):

        def seconds(schedule: Schedule) -> float:
            return compiled_s(print_json(schedule), inspected, preparation, bench) or math.nan

        return [(seconds(few), seconds(whole)) for few, whole in pairs]


def _speeds(task: TuningTask, pairs: Sequence[Pair], turns: int) -> list[float]:
    """The time with all parts over the sketch's, for each."""
    with tempfile.TemporaryDirectory(prefix="sdk-parts-") as folder:
        headers = []
        for place, schedule in enumerate(schedule for pair in pairs for schedule in pair):
            headers.append(Path(folder) / f"{place}.schedule.h")
            headers[-1].write_text(print_header(schedule, "kernel"))
        parameters = tuple(f"{key}={value}" for key, value in task.parameters.items())
        generator = sdk.GeneratorSpec(f"{task.reference.file}:{task.generator_name}", parameters)
        timed = sdk.bench(generator, list(map(str, headers)), target="x86-64", device="local", turns=turns)
    times_ms = [one.median_ms or math.nan for one in timed]
    return [all_ms / few_ms for few_ms, all_ms in zip(times_ms[::2], times_ms[1::2], strict=True)]


if __name__ == "__main__":
    sys.exit(main())
