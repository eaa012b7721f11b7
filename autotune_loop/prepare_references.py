"""Before the first batch: prove that the generator can be tuned at all, and put reference outputs on the device."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace

from distributed import Future

from autotune_loop import tasks
from autotune_loop.argset_state import ArgsetState, Timed
from autotune_loop.batch_measurer import ArgsetReference
from autotune_loop.candidate import SearchedSchedule, SearchFailure
from autotune_loop.crew import Crew
from autotune_loop.engine import Engine
from autotune_loop.events import Listener, Notice
from autotune_loop.featurization import Featurization, read_featurization
from autotune_loop.output_tolerance import output_tolerance
from autotune_loop.run_context import RunContext
from autotune_loop.run_store import RunStore
from autotune_loop.search_plan import greedy_point
from autotune_loop.timing import ReferenceRun
from devices.measure_settings import MeasureSettings
from devices.measurement import MeasureFailure, MeasureFailureReason, Measurement
from targets.errors import DeviceError, GeneratorError, SdkError, UsageError
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
        GeneratorError: the generator cannot be scheduled at all; the sentence shows the fix.
        UsageError: sizes, scalars or inputs that its kernel has no arguments for.
    """
    probes = [_submit_probe(engine, store, context, index) for index in range(len(context.argsets))]
    references = [_submit_reference(engine, store, context, index) for index in range(len(context.argsets))]
    states = []
    for index, (probe, reference) in enumerate(zip(probes, references, strict=True)):
        features = _probe_features(probe.result(), stop)
        built = reference.result()
        if features is None or stop.is_set():
            return []
        states.append(_state(engine, crew, store, context, settings, index, features, built, listen, stop))
    return states


def _submit_probe(
    engine: Engine, store: RunStore, context: RunContext, index: int
) -> Future[SearchedSchedule | SearchFailure]:
    """A cheap search: fails at once where every search would, and gives the pipeline's features."""
    point = greedy_point(0, store.updated_weights)
    folder = context.work_folder / "probe" / str(index)
    return engine.submit_build(tasks.search, point, context.argsets[index], folder)


def _submit_reference(
    engine: Engine, store: RunStore, context: RunContext, index: int, skip: int = 0
) -> Future[tasks.BuiltReference | GeneratorFailure | None]:
    symbol = _reference_symbol(context, index)
    folder = store.objects / symbol
    return engine.submit_build(tasks.build_reference, context.argsets[index], folder, symbol, skip)


def _reference_symbol(context: RunContext, index: int) -> str:
    return f"{context.function_name}_reference_a{index}"


def _probe_features(result: SearchedSchedule | SearchFailure, stop: StopSignal) -> Featurization | None:
    if isinstance(result, SearchedSchedule):
        features = read_featurization(result.featurization_path)
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
    listen: Listener,
    stop: StopSignal,
) -> ArgsetState:
    """An argument set's state, with the first reference that can be built and does run.

    The reference's schedule may win, too, where its header compiles: what is shipped is then never slower than it.
    """
    argset = context.argsets[index]
    reference = ArgsetReference(None, output_tolerance(features), pipeline_id(features, argset))
    state = ArgsetState(index, argset, context.function_name, reference)
    trouble = ""
    while isinstance(built, tasks.BuiltReference):
        run = _reference_run(engine, context, index, built)
        timing = crew.prepare(run, index, settings, stop.is_set)
        if timing is None or isinstance(timing.result, Measurement):
            state.reference = replace(reference, run=run)
            if timing is not None and isinstance(timing.result, Measurement) and built.header_compiles:
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
            median_ms=measurement.median_s * 1e3,
            spread_ms=measurement.spread_s * 1e3,
            is_default=False,
        )
    )


def _reference_run(engine: Engine, context: RunContext, index: int, built: tasks.BuiltReference) -> ReferenceRun:
    """The reference as an executable of its own, which stays for as long as the run: devices come and go."""
    output = context.work_folder / "executables" / f"reference_{index}"
    output.parent.mkdir(parents=True, exist_ok=True)
    executable = engine.submit_build(tasks.link, [built.kernel], output).result()
    if isinstance(executable, SdkError):
        raise executable
    return ReferenceRun(executable, built.kernel.name, f"reference_{index}.raw", context.limits.reference_run_s)


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
