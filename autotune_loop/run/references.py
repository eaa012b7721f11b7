"""Before the first batch: check that the generator can be tuned, and put reference outputs on the device.

The reference is an independent schedule, which can win. Where Halide's vector code has bugs, plain loops are the
reference, and the schedule that is the reference elsewhere is its rival, which can win if its output is the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.candidate import Placement, SearchFailure, Yardstick
from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.device_session import ReferenceRun
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildReference, BuiltReference, Link, Search
from halide_autotune.autotune_loop.execute.tasks.own_schedule import OwnSchedule
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import DescribePipeline
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference, joined_pipeline_id
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.measure.output_tolerance import (
    check_reference_failure,
    output_tolerance,
    tolerance_of,
)
from halide_autotune.autotune_loop.measure.retry_state import MeasureJob
from halide_autotune.autotune_loop.play_off.incumbent import Incumbent, keep_incumbent, submit_incumbent
from halide_autotune.autotune_loop.play_off.verdict import sentence
from halide_autotune.autotune_loop.run.kept_reference import keep_reference, read_kept_reference
from halide_autotune.autotune_loop.run.nothing_timed import SEARCHES_ALONE, no_search
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.run.timed import Timed
from halide_autotune.autotune_loop.run_scale import RunScale, process_error
from halide_autotune.autotune_loop.search.board_references import built_kernels, submit_board_references
from halide_autotune.autotune_loop.search.dead_end import search_elsewhere
from halide_autotune.autotune_loop.search.hvx_floats import check_hvx_floats
from halide_autotune.autotune_loop.search.plan import greedy_point
from halide_autotune.autotune_loop.search.schedule_proposals import may_propose
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.featurization import Featurization, read_featurization, uses_float
from halide_autotune.autotune_loop.store.published import NoDefault
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.devices.timing.measurement_at_sizes import medians_by_size_s
from halide_autotune.targets.build.executable import Executable, KernelObject
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.pipeline.shape import PipelineShape
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.profile import OWN_SCHEDULE

_REFERENCE = "reference"
_RIVAL = "rival"


def prepare_references(
    executor: Executor,
    dispatcher: Dispatcher,
    store: RunStore,
    context: RunContext,
    settings: MeasureSettings,
    listen: Listener,
    stop: StopSignal,
    on_held: Callable[[float], None] = lambda held_s: None,
) -> list[TaskState]:
    """Return a state for each argument set, with its reference outputs computed on the device.

    Args:
        on_held: told how long each reference held its device.

    Raises:
        GeneratorError: the generator cannot be scheduled, or not for this target; the message shows the fix.
        UsageError: the kernel has no arguments for the given sizes, scalars or inputs.
    """
    preparations = [
        _Preparation(executor, dispatcher, store, context, settings, index, listen, stop, on_held)
        for index in range(len(context.tasks))
    ]
    incumbents = [preparation.incumbent() for preparation in preparations]
    states = []
    for preparation, incumbent in zip(preparations, incumbents, strict=True):
        state = preparation.state()
        if state is None or stop.is_set():
            return []
        state.incumbent = incumbent
        states.append(state)
    return states


@dataclass
class _Preparation:
    """Prepares the reference of one argument set; the builds start at once."""

    executor: Executor
    dispatcher: Dispatcher
    store: RunStore
    context: RunContext
    settings: MeasureSettings
    index: int
    listen: Listener
    stop: StopSignal
    on_held: Callable[[float], None]

    def __post_init__(self) -> None:
        self._task = self.context.tasks[self.index]
        self._trouble = ""
        # A cheap search: it fails if every search would, and gives the pipeline's features.
        folder = self.context.workspace.work_folder / "probe" / str(self.index)
        probe = Search(folder, self.index, greedy_point(0, self.store.updated_weights))
        self._probe = self.executor.submit(probe) if self._task.searches else None
        self._kept = read_kept_reference(self.store.samples, self.index)
        self._reference = self._submit(_REFERENCE, skip=0 if self._kept is None else self._kept.position)
        # The schedules after the plain loops, if those are the reference and any schedule is to win.
        can_win = self._task.space is None and not self.context.only_records
        has_rival = self.context.profile.has_doubtful_vectors and can_win
        self._rival = self._submit(_RIVAL, skip=1) if has_rival else None
        self._others = submit_board_references(self.executor, self.store, self.context, self.index)
        self._incumbent = submit_incumbent(self.executor, self.store, self.context, self.index)

    def _submit(self, kind: str, skip: int = 0) -> Future[BuiltReference | GeneratorFailure | None]:
        """Start to build the first usable reference schedule after the first `skip`."""
        symbol = f"{self._task.function_name}_{kind}_a{self.index}"
        return self.executor.submit(BuildReference(self.store.objects / symbol, self.index, symbol, skip))

    def incumbent(self) -> Incumbent | None:
        """What is in use, built; None without one, if it cannot be built, or if the run is stopped."""
        if self._incumbent is None:
            return None
        built = self._incumbent.result()
        if self.stop.is_set():
            return None
        if isinstance(built, OwnSchedule) and built.why_not:
            text = f"The search does not start from the own schedule of generator {self._task.generator_name}:"
            self.listen(Notice(f"{text} {built.why_not}"))
        kept = keep_incumbent(self.store, self.index, self._task, built)
        if isinstance(kept, Incumbent):
            return kept
        name = self._task.generator_name
        text = f"The own schedule of generator {name} cannot be built, so it is not compared with: {kept.message}"
        self.listen(Notice(text, warning=True))
        return None

    def state(self) -> TaskState | None:
        """The state with the first reference that builds and runs, and its rival; None if the run is stopped."""
        if self._task.space is not None:
            return self._own_state()
        found = self._features()
        built = self._reference.result()
        if found is None or self.stop.is_set():
            return None
        state = self._without_search(found) if isinstance(found, PipelineShape) else self._searched(found)
        if self._add_reference(state, built) and self._rival is not None:
            self._add_rival(state, self._rival.result())
        return state

    def _searched(self, features: Featurization) -> TaskState:
        if uses_float(features):
            check_hvx_floats(self.executor, self.store, self.context, self.index, self.listen)
        reference = TaskReference(None, output_tolerance(features), self._pipeline_id(features))
        return TaskState(self.index, self._task, reference, autoscheduler=self.context.network.value)

    def _without_search(self, shape: PipelineShape) -> TaskState:
        autoscheduler = self.context.network.value
        reference = TaskReference(None, tolerance_of(computes_with_floats=shape.has_floats), 0)
        state = TaskState(self.index, replace(self._task, searches=False), reference, autoscheduler=autoscheduler)
        state.no_default = NoDefault(f"no search of {autoscheduler} gives a schedule")
        return state

    def _own_state(self) -> TaskState | None:
        """The state with the generator's own schedule as its reference, with the default parameters."""
        built = self._reference.result()
        if self.stop.is_set():
            return None
        name, trouble = self._task.generator_name, ""
        if isinstance(built, BuiltReference):
            tolerance = tolerance_of(computes_with_floats=built.uses_float is not False)
            state = TaskState(self.index, self._task, TaskReference(None, tolerance, 0), autoscheduler="own schedule")
            self._add_reference(state, built)
            if state.reference.run is not None and isinstance(features := self._features(), Featurization):
                state.reference = replace(state.reference, pipeline_id=self._pipeline_id(features))
            if state.reference.run is not None or self.stop.is_set():
                return state
            trouble = f" when it runs: {self._trouble}"
        elif built is not None:
            trouble = f": {built.message}"
        raise GeneratorError(
            f"The own schedule of generator {name} fails with its default parameters{trouble}",
            next_step="Correct the schedule, or give parameters with which it works with -p.",
        )

    def _pipeline_id(self, features: Featurization) -> int:
        return pipeline_id(features, self._task.parameters, self.context.inputs.also_sizes)

    def _features(self) -> Featurization | PipelineShape | None:
        """The pipeline's features; its shape where no search succeeds and other techniques can go on.

        None if the run is stopped, or no schedules are searched.
        """
        if self._probe is None:
            return None
        result, shape = self._probe.result(), None
        is_hopeless = isinstance(result, SearchFailure) and result.failure.reason.concerns_every_candidate
        if isinstance(result, SearchFailure) and not (is_hopeless or self.stop.is_set()):
            shape = self._shape()
            # What crashes where the pipeline can be described is the search.
            if result.failure.reason is GeneratorFailureReason.DEAD_END or (
                result.failure.reason is GeneratorFailureReason.CRASHED and shape is not None
            ):
                result = search_elsewhere(
                    self.executor, self.store, self.context, self.index, result, self.listen, self.stop
                )
        if isinstance(result, SearchFailure):
            return self._shape_instead(result.failure, shape)
        features = read_featurization(result.featurization_path, self.context.network)
        shutil.rmtree(result.folder, ignore_errors=True)
        return features

    def _shape(self) -> PipelineShape | None:
        folder = self.context.workspace.work_folder / "shape" / str(self.index)
        shape = self.executor.submit(DescribePipeline(folder, self.index)).result()
        return shape if isinstance(shape, PipelineShape) else None

    def _shape_instead(self, failure: GeneratorFailure, shape: PipelineShape | None) -> PipelineShape | None:
        """The shape, for a run without Halide's search; None if the run is stopped.

        Raises:
            GeneratorError: nothing else can go on.
        """
        if self.stop.is_set():
            return None
        goes_on = shape is not None and may_propose(self.context, self._task)
        # Whatever ends every search may keep the reference from ending, too.
        built = self._reference.result() if goes_on or failure.reason in SEARCHES_ALONE else None
        if self.stop.is_set():
            return None
        if not (goes_on and isinstance(built, BuiltReference)):
            raise no_search(self._task, self.context.profile, failure, built)
        without = f"No search of {self.context.network.value} gives a schedule, so only other techniques propose some."
        self.listen(Notice(f"{failure.message} {without}", warning=True))
        return shape

    def _add_reference(self, state: TaskState, built: BuiltReference | GeneratorFailure | None) -> bool:
        """Run the first reference that builds and runs; whether that is plain loops.

        The reference can win if its header compiles, so that what ships is never slower.
        """
        others = built_kernels(self._others)
        trouble = ""
        while isinstance(built, BuiltReference):
            run = self._reference_run(built, others)
            timing = self.dispatcher.prepare(run, self.index, self.settings, self.stop.is_set)
            result = None if timing is None else timing.result
            held_s = 0.0 if timing is None else timing.held_s
            self.on_held(held_s)
            if not isinstance(result, MeasureFailure):
                state.reference = replace(state.reference, run=run)
                if self.context.profile.has_doubtful_vectors and not built.is_plain:
                    self._warn_of_vectors(built, trouble)
                if built.autoscheduler == OWN_SCHEDULE and self._task.space is None:
                    text = f"Outputs are compared with those of {built.title}, because no other could run."
                    self.listen(Notice(f"{text}{trouble}"))
                if result is not None:
                    self._use_as_yardstick(state, built, result, trouble)
                    if built.ships:
                        self._let_compete(_REFERENCE, state, built, result, held_s)
                return built.is_plain
            if self.stop.is_set():
                return False
            check_reference_failure(result)
            late = result.reason is MeasureFailureReason.TIMED_OUT
            advice = self.context.limits.advice("reference_run_s") if late else ""
            trouble += f" {sentence(built.title)} failed: {result.message}{advice}"
            built = self._submit(_REFERENCE, built.position + 1).result()
        if isinstance(built, GeneratorFailure):
            trouble += f" {built.message}"
        self._trouble = trouble.strip()
        if self._task.space is None:
            self.listen(Notice(f"Outputs are not checked: no reference schedule could be run.{trouble}", warning=True))
        return False

    def _use_as_yardstick(
        self, state: TaskState, built: BuiltReference, measurement: Measurement, trouble: str
    ) -> None:
        """Time candidates beside the reference; a resumed run goes on with what all its timings say of it.

        Raises:
            RunFolderError: the times of the run are multiples of another one's.
        """
        if not measurement.clock.is_noisy:
            return
        scale = self.store.database.scales().get(self.index)
        if scale is None:
            scale = RunScale(measurement.device, [measurement.comparable_median_s * 1e3])
            keep_reference(self.store.samples, self.index, built)
            self.store.database.add_yardstick(self.index, Yardstick(built.kernel, scale))
        elif self._kept is not None:
            self._kept.check(built, trouble)
        state.use_yardstick(Yardstick(built.kernel, scale))

    def _warn_of_vectors(self, built: BuiltReference, trouble: str) -> None:
        text = (
            f"Outputs are compared with those of {built.title}, because plain loops could not run."
            f" Bugs in Halide's vector code for this target may affect both.{trouble}"
        )
        self.listen(Notice(text, warning=True))

    def _add_rival(self, state: TaskState, built: BuiltReference | GeneratorFailure | None) -> None:
        """Time the first schedule that is the reference elsewhere and whose output is the reference's."""
        while isinstance(built, BuiltReference) and not self.stop.is_set():
            result, held_s = self._checked(built.kernel, state.reference, state.yardstick)
            if isinstance(result, Measurement):
                if built.ships:
                    self._let_compete(_RIVAL, state, built, result, held_s)
                return
            if result is not None:
                self.listen(Notice(f"{sentence(built.title)} is left out: {result.message}"))
            built = self._submit(_RIVAL, built.position + 1).result()

    def _checked(
        self, kernel: KernelObject, reference: TaskReference, yardstick: Yardstick | None
    ) -> tuple[Measurement | MeasureFailure | None, float]:
        """Check and time a kernel, and how long that held a device; None if the run is stopped first."""
        executable = self._link(_RIVAL, [kernel] if yardstick is None else [kernel, yardstick.kernel])
        settings = self.settings if yardstick is None else replace(self.settings, beside=yardstick.kernel.name)
        results: list[tuple[Measurement | MeasureFailure, float]] = []
        self.dispatcher.run(
            [MeasureJob(executable, kernel.name, self.index, reference.run, reference.tolerance)],
            lambda job: settings,
            lambda job, result, held_s: results.append((result, held_s)),
            self.stop.is_set,
        )
        self.dispatcher.forget(executable)
        return results[0] if results else (None, 0.0)

    def _let_compete(
        self, kind: str, state: TaskState, built: BuiltReference, measurement: Measurement, held_s: float
    ) -> None:
        placement = None
        if state.yardstick is not None:
            placement = state.yardstick.place(measurement) or Placement(1.0, measurement.median_s * 1e3)
        self.store.database.add_measurement(measurement, "reference", held_s, placement)
        folder = self.store.keep_header(kind, self.index, built.schedule_path.read_text())
        median_ms = measurement.comparable_median_s * 1e3
        if placement is not None and state.scale is not None:
            median_ms = state.scale.time_ms(placement.relative)
        time_text = f"{median_ms:.4g} ms{measurement.clock.mark} (one timing)"
        who = sentence(built.title)
        if kind == _REFERENCE:
            who = f"The reference, {built.title},"
        self.listen(Notice(f"{who} takes {time_text}, and can win."))
        state.add_timed(
            Timed(
                symbol=built.kernel.name,
                sample=f"{folder.parent.name}/{folder.name}",
                origin=built.autoscheduler,
                median_ms=median_ms,
                spread_ms=measurement.spread_s / measurement.median_s * median_ms,
                is_default=False,
                device=measurement.device,
                log_error=0.0 if kind == _REFERENCE or placement is None else process_error(1),
                by_size_ms={size: time_s * 1e3 for size, time_s in medians_by_size_s(measurement).items()},
            )
        )

    def _reference_run(self, built: BuiltReference, others: Sequence[KernelObject]) -> ReferenceRun:
        """The reference in its own executable, kept until the run ends, because devices can join at any time."""
        executable = self._link(_REFERENCE, [built.kernel, *others])
        # Says what the first batch's schedules may take.
        self.store.database.add_build(built.kernel.name, built.duration_s, built.kernel.object_path.stat().st_size)
        file, limit_s = f"reference_{self.index}.raw", self.context.limits.reference_run_s
        return ReferenceRun(executable, built.kernel.name, file, limit_s, tuple(other.name for other in others))

    def _link(self, kind: str, kernels: Sequence[KernelObject]) -> Executable:
        link = Link(self.context.workspace.work_folder / "executables", f"{kind}_{self.index}", tuple(kernels))
        return self.executor.submit(link).result()


def pipeline_id(features: Featurization, argset: Mapping[str, str], also_sizes: Sequence[str] = ()) -> int:
    """The number by which training groups samples: one for each pipeline, set of parameters and set of sizes."""
    return joined_pipeline_id([features.pipeline_id, sorted(argset.items()), *also_sizes])
