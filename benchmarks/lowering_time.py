"""What lowering a schedule takes, as a share of generating its code.

    sdk autotune examples/corner_detector.cpp --target x86-64 --budget 1m -b runs/corner_detector
    python -m benchmarks.lowering_time runs/*

Of each run's first pipeline, up to 16 schedules are lowered in one run of the generator, and each is compiled, as a run
does it. Printed for each: seconds a schedule for both, and the share; the goal is a quarter, in the median of the
pipelines. The generators must be where they were.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

from benchmarks.recorded_nests import schedules_of
from benchmarks.simulated_clock_ranking import Bench, open_bench
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.training.lowered_samples import opened_task
from halide_autotune.targets.generator.run import GeneratedFiles, GeneratorFailure, GeneratorRequest, run_generator
from halide_autotune.targets.lowering.lower import lower_schedules
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.schedule.plugins import replay_autoscheduler

_MOST, _LIMIT_S = 16, 120.0
GOAL = 0.25


def main() -> int:
    """Print a row for each run; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_FOLDER")
    bench, shares = open_bench(), []
    for folder in parser.parse_args().runs:
        lowered_s, generated_s = _times(folder, bench)
        shares.append(lowered_s / generated_s)
        print(f"{folder.name:24}{lowered_s:8.3f} s{generated_s:8.3f} s{shares[-1]:8.0%}", flush=True)
    print(f"in the median {statistics.median(shares):.0%}")
    return 0 if statistics.median(shares) <= GOAL else 1


def _times(folder: Path, bench: Bench) -> tuple[float, float]:
    """Seconds that lowering and compiling a schedule take."""
    task = read_recorded_run(folder).record.spec.tasks[0]
    texts = schedules_of(folder)[:_MOST]
    with opened_task(task, bench.profile.halide_target, bench.lowering_tools) as (inspected, preparation):
        lower_schedules(inspected, preparation, texts[:1], _LIMIT_S, bench.compiler)  # builds the plug-ins
        began_s = time.perf_counter()
        lowered = lower_schedules(inspected, preparation, texts, _LIMIT_S, bench.compiler)
        lowered_s = (time.perf_counter() - began_s) / len(texts)
        assert not isinstance(lowered, GeneratorFailure), lowered.message
        times_s = [compiled_s(text, inspected, preparation, bench) for text in texts]
    return lowered_s, statistics.mean(each_s for each_s in times_s if each_s is not None)


def compiled_s(text: str, inspected: Inspected, preparation: PipelinePreparation, bench: Bench) -> float | None:
    """Seconds that generating a schedule's code takes; None if that cannot be."""
    with scratch_folder("lowering-time") as scratch:
        path = scratch / "schedule.json"
        path.write_text(text, encoding="utf-8")
        request = GeneratorRequest(
            generator_name=inspected.generator_name,
            function_name="kernel",
            base_name="kernel",
            output_folder=scratch,
            emit=("object",),
            halide_target=inspected.halide_target,
            parameters=inspected.parameters,
            autoscheduler=preparation.before(replay_autoscheduler(path, bench.compiler)),
        )
        generated = run_generator(inspected.program, request, inspected.limits)
        return generated.duration_s if isinstance(generated, GeneratedFiles) else None


if __name__ == "__main__":
    sys.exit(main())
