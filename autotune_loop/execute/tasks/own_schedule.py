"""What is done in a build slot with the schedule that a generator itself applies."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from halide_autotune.autotune_loop.candidate import BuiltObject
from halide_autotune.autotune_loop.execute.tasks.build_tasks import GeneratorTask, built_object
from halide_autotune.autotune_loop.execute.worker_state import WorkerState
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.reading.pipeline import read_schedule
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.targets.build.object_code import is_same_code
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.generator.run import GeneratedFiles, GeneratorFailure, plain_folder
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.profile.target_features import kernel_target
from halide_autotune.targets.schedule.pipeline_schedule import read_pipeline
from halide_autotune.targets.schedule.plugins import replay_autoscheduler


@dataclass(frozen=True)
class BuildOwn(GeneratorTask[BuiltObject | GeneratorFailure], kind="build_own"):
    """Generate the code of the generator's own schedule.

    Attributes:
        values: of the tuned parameters.
    """

    symbol: str
    values: Mapping[str, str] = field(default_factory=dict)

    def _values(self) -> Mapping[str, str]:
        return self.values

    def run(self, state: WorkerState) -> BuiltObject | GeneratorFailure:
        """See `Task.run`."""
        generated = self.apply(state, None, self.symbol)
        if isinstance(generated, GeneratorFailure):
            shutil.rmtree(self.output_folder, ignore_errors=True)
            return generated
        return built_object(self.symbol, generated)


@dataclass(frozen=True)
class OwnSchedule:
    """The generator's own schedule, built.

    Attributes:
        header_text: a header that gives the same code; empty if there is none.
        why_not: why there is none.
    """

    built: BuiltObject
    header_text: str = ""
    why_not: str = ""


@dataclass(frozen=True)
class BuildOwnSchedule(GeneratorTask[OwnSchedule | GeneratorFailure], kind="build_own_schedule"):
    """Generate the code of the generator's own schedule, and read it as a header."""

    symbol: str

    def run(self, state: WorkerState) -> OwnSchedule | GeneratorFailure:
        """See `Task.run`."""
        generated = self.apply(state, None, self.symbol)
        if isinstance(generated, GeneratorFailure):
            shutil.rmtree(self.output_folder, ignore_errors=True)
            return generated
        built = built_object(self.symbol, generated)
        try:
            return self._read(state, built)
        except SdkError as error:
            return OwnSchedule(built, why_not=error.message)

    def _read(self, state: WorkerState, built: BuiltObject) -> OwnSchedule:
        context = state.context
        task = context.tasks[self.task_index]
        target = kernel_target(context.profile.halide_target)
        program = state.program(task.reference)
        with state.building():
            pipeline = read_pipeline(Inspected(program, task.generator_name, task.parameters, target), state.compiler)
        read = read_schedule(pipeline.scheduled, pipeline.plain)
        if read.differences:
            return OwnSchedule(built, why_not=" ".join(read.differences))
        again = self._replayed(state, read.schedule)
        if isinstance(again, GeneratorFailure):
            return OwnSchedule(built, why_not=again.message)
        if not is_same_code(again.files["object"].read_bytes(), built.object_path.read_bytes()):
            return OwnSchedule(built, why_not="What was read of it gives other code.")
        header = print_header(replace(read.schedule, function_name=task.function_name), task.function_name)
        return OwnSchedule(built, header)

    def _prepared_as(self, task: TuningTask) -> TuningTask:
        # The own schedule's code knows the generator's own estimates only, and codes are compared.
        return replace(task, estimates={})

    def _replayed(self, state: WorkerState, schedule: Schedule) -> GeneratedFiles | GeneratorFailure:
        """The code that the schedule gives as data."""
        folder = self.output_folder / "replayed"
        folder.mkdir(parents=True, exist_ok=True)
        task = replace(self, output_folder=folder)
        with plain_folder(folder) as plain:
            path = plain / "schedule.json"
            path.write_text(print_json(schedule), encoding="utf-8")
            return task.apply(state, replay_autoscheduler(path, state.compiler), self.symbol)
