"""What is done in a build slot with schedules that are data, and with the pipeline that they are for."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from halide_autotune.autotune_loop.candidate import BuiltObject
from halide_autotune.autotune_loop.execute.tasks.build_tasks import NEST_NAME, GeneratorTask, written_nest
from halide_autotune.autotune_loop.execute.worker_state import WorkerState
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.generator.run import GeneratorFailure, plain_folder
from halide_autotune.targets.lowering.lower import Lowered, build_lowering_plugin, described, lower_schedules
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.pipeline.shape import PipelineShape, describe_pipeline
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.process.pause import Pause
from halide_autotune.targets.profile.target_features import kernel_target
from halide_autotune.targets.schedule.plugins import replay_autoscheduler


@dataclass(frozen=True)
class BuildSchedule(GeneratorTask[BuiltObject | GeneratorFailure], kind="build_schedule"):
    """Generate the code of a schedule; no C++ is compiled.

    Attributes:
        schedule_json: see `autotune_loop.schedule.as_json`.
        limit_s: what takes longer to compile is given up.
        features: of Halide's target, beside the profile's.
        describes: its loop nest is written, too.
    """

    symbol: str
    schedule_json: str
    limit_s: float
    features: tuple[str, ...] = ()
    describes: bool = False

    def _features(self) -> tuple[str, ...]:
        return self.features

    def _limit_s(self, state: WorkerState, step: str) -> float:
        return min(self.limit_s, super()._limit_s(state, step))

    def run(self, state: WorkerState) -> BuiltObject | GeneratorFailure:
        """See `Task.run`."""
        self.output_folder.mkdir(parents=True, exist_ok=True)
        with plain_folder(self.output_folder) as plain:
            path = plain / "schedule.json"
            path.write_text(self.schedule_json, encoding="utf-8")
            choice = replay_autoscheduler(path, state.compiler)
            if self.describes:
                choice = described(choice, plain / NEST_NAME, state.compiler)
            generated = self.apply(state, choice, self.symbol, ("object",))
            path.unlink()
        if isinstance(generated, GeneratorFailure):
            shutil.rmtree(self.output_folder, ignore_errors=True)
            return generated
        nest_path = written_nest(self.output_folder)
        return BuiltObject(self.symbol, generated.files["object"], None, generated.duration_s, nest_path)


@dataclass(frozen=True)
class LowerSchedules(GeneratorTask[Lowered | GeneratorFailure | SdkError], kind="lower_schedules"):
    """Lower schedules without generating code.

    Attributes:
        schedules_json: at least one; see `autotune_loop.schedule.as_json`.
        limit_s: of processor time, for each of them.
    """

    runs_here = True

    schedules_json: tuple[str, ...]
    limit_s: float

    def run(self, state: WorkerState) -> Lowered | GeneratorFailure | SdkError:
        """See `Task.run`."""
        try:
            with state.building() as hold:
                inspected = _inspected(state, self.task_index, len(self.schedules_json) * self.limit_s, hold.pause)
                preparation, texts = _preparation(state, self.task_index), self.schedules_json
                return lower_schedules(inspected, preparation, texts, self.limit_s, state.compiler, hold.stop)
        except SdkError as error:
            return error


@dataclass(frozen=True)
class DescribePipeline(GeneratorTask[PipelineShape | GeneratorFailure | SdkError], kind="describe_pipeline"):
    """Describe what a task's pipeline computes.

    Attributes:
        lowers: its schedules will be lowered: what is compiled for that is compiled now, before anything is timed.
    """

    runs_here = True

    lowers: bool = False

    def run(self, state: WorkerState) -> PipelineShape | GeneratorFailure | SdkError:
        """See `Task.run`."""
        try:
            inspected = _inspected(state, self.task_index, state.context.limits.search_s)
            with state.building():
                if self.lowers:
                    build_lowering_plugin(state.compiler)
                return describe_pipeline(inspected, _preparation(state, self.task_index), state.compiler)
        except SdkError as error:
            return error


def _inspected(state: WorkerState, task_index: int, limit_s: float, pause: Pause | None = None) -> Inspected:
    context, task = state.context, state.context.tasks[task_index]
    limits = ProcessLimits(limit_s, context.limits.memory_bytes, context.workspace.cores.build, pause)
    target = kernel_target(context.profile.halide_target)
    return Inspected(state.program(task.reference), task.generator_name, task.parameters, target, limits)


def _preparation(state: WorkerState, task_index: int) -> PipelinePreparation:
    estimates = state.context.tasks[task_index].estimates
    return PipelinePreparation(build_preparation_plugin(state.compiler), estimates)
