"""Before the first batch: prove that the generator can be tuned at all, and put reference outputs on the device."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from autotune_loop import tasks
from autotune_loop.argset_state import ArgsetState, Timed
from autotune_loop.batch_measurer import ArgsetReference
from autotune_loop.board_references import built_kernels, submit_board_references
from autotune_loop.candidate import SearchedSchedule, SearchFailure
from autotune_loop.crew import Crew
from autotune_loop.engine import Engine
from autotune_loop.events import Listener, Notice
from autotune_loop.featurization import Featurization, read_featurization, uses_float
from autotune_loop.hvx_floats import check_hvx_floats
from autotune_loop.output_tolerance import output_tolerance
from autotune_loop.play_off.incumbent import Incumbent, IncumbentBuild, keep_incumbent, submit_incumbent
from autotune_loop.run_context import RunContext
from autotune_loop.run_store import RunStore
from autotune_loop.search_plan import greedy_point
from autotune_loop.timing import ReferenceRun
from devices.measure_settings import MeasureSettings
from devices.measurement import MeasureFailure, MeasureFailureReason, Measurement
from targets.errors import DeviceError, GeneratorError, SdkError, UsageError
from targets.executable import KernelObject
from targets.generator_run import GeneratorFailure
from targets.stop_signal import StopSignal


def prepare_references(
    engine: Engine,
    crew: Crew,
    store: RunStore,
    context: RunContext,
    settings: MeasureSettings,
    listen: Listener,
    stop: StopSignal,
) -> list[ArgsetState]:
    """One state for each argument set, its reference outputs computed on the device.

    Raises:
        GeneratorError: the generator cannot be scheduled at all, or not for this target; the sentence shows the fix.
        UsageError: sizes, scalars or inputs that its kernel has no arguments for.
    """
    probes = [_submit_probe(engine, store, context, index) for index in range(len(context.tasks))]
    references = [_submit_reference(engine, store, context, index) for index in range(len(context.tasks))]
    others = [submit_board_references(engine, store, context, index) for index in range(len(context.tasks))]
    submitted = [
        None if task.incumbent is None else submit_incumbent(engine, store, context, index, task.incumbent)
        for index, task in enumerate(context.tasks)
    ]
    incumbents = [_incumbent(store, context, index, built, stop) for index, built in enumerate(submitted)]
    states = []
    for index, (probe, reference) in enumerate(zip(probes, references, strict=True)):
        features = _probe_features(probe.result(), context, stop)
        built = reference.result()
        if features is None or stop.is_set():
            return []
        if uses_float(features):
            check_hvx_floats(engine, store, context, index)
        kernels = built_kernels(others[index])
        state = _state(engine, crew, store, context, settings, index, features, built, kernels, listen, stop)
        state.incumbent = incumbents[index]
        states.append(state)
    return [] if stop.is_set() else states


def _incumbent(
    store: RunStore, context: RunContext, index: int, built: IncumbentBuild | None, stop: StopSignal
) -> Incumbent | None:
    header = context.tasks[index].incumbent
    if header is None or built is None:
        return None
    result = built.result()
    return None if stop.is_set() else keep_incumbent(store, index, header, result)


def _submit_probe(
    engine: Engine, store: RunStore, context: RunContext, index: int
) -> Future[SearchedSchedule | SearchFailure]:
    """A cheap search: fails at once where every search would, and gives the pipeline's features."""
    point = greedy_point(0, store.updated_weights)
    folder = context.work_folder / "probe" / str(index)
    return engine.submit_build(tasks.search, point, index, folder)


def _submit_reference(
    engine: Engine, store: RunStore, context: RunContext, index: int, skip: int = 0
) -> Future[tasks.BuiltReference | GeneratorFailure | None]:
    symbol = _reference_symbol(context, index)
    folder = store.objects / symbol
    return engine.submit_build(tasks.build_reference, index, folder, symbol, skip)


def _reference_symbol(context: RunContext, index: int) -> str:
    return f"{context.tasks[index].function_name}_reference_a{index}"


def _probe_features(
    result: SearchedSchedule | SearchFailure, context: RunContext, stop: StopSignal
) -> Featurization | None:
    if isinstance(result, SearchedSchedule):
        features = read_featurization(result.featurization_path, context.network)
        shutil.rmtree(result.folder, ignore_errors=True)
        return features
    if stop.is_set():
        return None
    raise GeneratorError(result.failure.sentence)


def _state(
    engine: Engine,
    crew: Crew,
    store: RunStore,
    context: RunContext,
    settings: MeasureSettings,
    index: int,
    features: Featurization,
    built: tasks.BuiltReference | GeneratorFailure | None,
    others: Sequence[KernelObject],
    listen: Listener,
    stop: StopSignal,
) -> ArgsetState:
    """An argument set's state, with the first reference that can be built and does run.

    The reference's schedule may win, too, where its header compiles: what is shipped is then never slower than it.
    """
    task = context.tasks[index]
    reference = ArgsetReference(None, output_tolerance(features), pipeline_id(features, task.parameters))
    state = ArgsetState(index, task, reference, autoscheduler=context.network.value)
    trouble = ""
    while isinstance(built, tasks.BuiltReference):
        run = _reference_run(engine, context, index, built, others)
        timing = crew.prepare(run, index, settings, stop.is_set)
        if timing is None or isinstance(timing.result, Measurement):
            state.reference = replace(reference, run=run)
            if timing is not None and isinstance(timing.result, Measurement) and built.ships:
                _let_compete(state, store, built, timing.result, listen)
            return state
        result = timing.result
        _check_reference_failure(result, stop)
        trouble += f" {built.autoscheduler}'s schedule did not run: {result.sentence}"
        built = _submit_reference(engine, store, context, index, built.position + 1).result()
    if isinstance(built, GeneratorFailure):
        trouble += f" {built.sentence}"
    listen(Notice(f"Outputs cannot be checked: there is no reference.{trouble}", warning=True))
    return state


def _let_compete(
    state: ArgsetState,
    store: RunStore,
    built: tasks.BuiltReference,
    measurement: Measurement,
    listen: Listener,
) -> None:
    store.database.add_measurement(measurement, "reference", sum(measurement.repetitions_s))
    folder = store.keep_reference(state.argset_index, built.schedule_path)
    time_text = f"{measurement.median_s * 1e3:.6g} ms ({measurement.clock.value} time, median)"
    listen(Notice(f"The reference, {built.autoscheduler}'s schedule, takes {time_text}; it may win, too."))
    state.add_timed(
        Timed(
            symbol=built.kernel.name,
            folder=folder,
            origin=built.autoscheduler,
            median_ms=measurement.comparable_median_s * 1e3,
            spread_ms=measurement.spread_s * measurement.factor * 1e3,
            is_default=False,
            device=measurement.device,
        )
    )


def _reference_run(
    engine: Engine, context: RunContext, index: int, built: tasks.BuiltReference, others: Sequence[KernelObject]
) -> ReferenceRun:
    """The reference as an executable of its own, which stays for as long as the run: devices come and go."""
    output = context.work_folder / "executables" / f"reference_{index}"
    output.parent.mkdir(parents=True, exist_ok=True)
    executable = engine.submit_here(tasks.link, [built.kernel, *others], output).result()
    if isinstance(executable, SdkError):
        raise executable
    file, limit_s = f"reference_{index}.raw", context.limits.reference_run_s
    return ReferenceRun(executable, built.kernel.name, file, limit_s, tuple(other.name for other in others))


def _check_reference_failure(failure: MeasureFailure, stop: StopSignal) -> None:
    """Raise what another reference would not mend.

    Raises:
        UsageError: sizes, scalars or inputs that the kernel has no arguments for: no schedule would run.
        DeviceError: no device is left.
    """
    if failure.reason is MeasureFailureReason.WRONG_ARGUMENTS:
        raise UsageError(
            f"The kernel cannot be called as asked. {failure.sentence}",
            next_step="Check --size, --scalar and --input against the generator's inputs and outputs.",
        )
    if failure.reason is MeasureFailureReason.DEVICE and not stop.is_set():
        raise DeviceError(failure.sentence)


def pipeline_id(features: Featurization, argset: Mapping[str, str]) -> int:
    """What samples are grouped by in training: one number for one pipeline with one set of parameters.

    Halide's tools take whatever id they are given and mix pipelines whose ids collide, so it is a hash.
    """
    text = json.dumps([features.pipeline_id, sorted(argset.items())])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") >> 1 or 1
