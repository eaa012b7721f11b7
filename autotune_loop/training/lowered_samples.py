"""Lowers what a run has timed and not lowered, and keeps the loop nests in the run's folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.lowered.lowered_file import pack_lowered, read_lowered
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask, sample_file_name
from halide_autotune.targets.errors import GeneratorError, RunFolderError, os_error_as
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.lowering.loop_nest import LoopNest
from halide_autotune.targets.lowering.lower import Refused, lower_schedules
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.target_features import kernel_target
from halide_autotune.targets.schedule.header import read_schedule
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

# For all schedules of a task together, and for each of them.
_LIMITS, _LIMIT_S = ProcessLimits(time_s=1800.0, memory_bytes=8 * 2**30), 60.0


@dataclass(frozen=True)
class LoweringTools:
    """What a generator needs to run on this machine."""

    halide: HalideInstall
    compiler: HostCppCompiler
    environment: Mapping[str, str]


@contextlib.contextmanager
def opened_task(
    task: TuningTask, halide_target: str, tools: LoweringTools
) -> Iterator[tuple[Inspected, PipelinePreparation]]:
    """The generator of a recorded task, and what is done to its pipeline first.

    Raises:
        GeneratorError, ToolchainError: it cannot be opened any more.
    """
    program = open_generator(task.reference, tools.halide, tools.compiler, tools.environment)
    with contextlib.closing(program):
        target = kernel_target(halide_target)
        inspected = Inspected(program, task.generator_name, task.parameters, target, _LIMITS)
        yield inspected, PipelinePreparation(build_preparation_plugin(tools.compiler), task.estimates)


def lower_samples(
    run: RecordedRun, task_index: int, tools: LoweringTools, stop: StopSignal | None = None
) -> dict[Path, LoopNest]:
    """The loop nests of a task's timed schedules, by their folders: as the run kept them, or lowered now and kept.

    What cannot be read as data, or lowered, is left out.

    Raises:
        GeneratorError, ToolchainError: the generator cannot be opened any more, or fails.
        RunFolderError: the run's folder cannot be written.
    """
    spec = run.record.spec
    name = sample_file_name(spec.tasks)
    samples = [one.candidate.sample for one in run.samples if one.candidate.task_index == task_index]
    folders = [run.folder / "samples" / sample for sample in samples]
    nests = {each: nest for each in folders if (nest := _kept(each / f"{name}.lowered")) is not None}
    texts = {
        each: text for each in folders if each not in nests and (text := schedule_json(each / f"{name}.schedule.h"))
    }
    if texts:
        task = spec.tasks[task_index]
        new = _lower([*texts.values()], task, spec.profile.halide_target, tools, stop)
        for each, found in zip(texts, new, strict=True):
            if isinstance(found, LoopNest):
                nests[each] = found
                with os_error_as(RunFolderError, f"{each} cannot be written"):
                    write_atomically(each / f"{name}.lowered", pack_lowered(found))
    return nests


def _lower(
    texts: Sequence[str], task: TuningTask, halide_target: str, tools: LoweringTools, stop: StopSignal | None
) -> Sequence[LoopNest | Refused]:
    with opened_task(task, halide_target, tools) as (inspected, preparation):
        lowered = lower_schedules(inspected, preparation, texts, _LIMIT_S, tools.compiler, stop)
    if isinstance(lowered, GeneratorFailure):
        raise GeneratorError(f"The schedules of {task.generator_name} cannot be lowered: {lowered.message}")
    return lowered.nests


def _kept(path: Path) -> LoopNest | None:
    try:
        return read_lowered(path)
    except (FileNotFoundError, GeneratorError):
        return None


def schedule_json(header: Path) -> str | None:
    """A schedule as data; None for what cannot be read so, such as a schedule of the generator's own."""
    try:
        return print_json(parse_schedule(read_schedule(header)))
    except (OSError, KeyError, ValueError, GeneratorError):
        return None
