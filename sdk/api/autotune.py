"""`sdk.autotune` and `sdk.resume`: the whole job, from Python."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.autotune_loop.events import Listener, Notice, ignore
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.search.known.known_schedules import known_pipelines
from halide_autotune.autotune_loop.search.techniques.registry import load_techniques
from halide_autotune.autotune_loop.specification.objective import check_weighted_devices
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.options.generator_spec import (
    GeneratorSpec,
    asked_options,
    generator_specs,
    run_name,
    tuning_tasks,
    with_incumbents,
    with_name_mangling,
)
from halide_autotune.sdk.options.resume_options import resumed_options
from halide_autotune.sdk.project.history import keep_run, open_history
from halide_autotune.sdk.project.input_files import prepared_inputs
from halide_autotune.sdk.project.preparation import check_function_name, free_run_folder, open_workbench
from halide_autotune.sdk.select.chosen_devices import ChosenDevices, find_devices
from halide_autotune.sdk.select.farm_devices import find_farm_devices, wanted_farm
from halide_autotune.sdk.select.start_weights import StartWeights, choose_start_weights, keep_trained_weights
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import GeneratorError, SdkError, UsageError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.options import with_whole_paths


def autotune(
    generator: str | GeneratorSpec | Sequence[str | GeneratorSpec],
    *,
    target: str | None = None,
    device: str | Sequence[str] = (),
    options: RunOptions | None = None,
    run_folder: Path | None = None,
    listen: Listener = ignore,
    stop: StopSignal | None = None,
    settings: Settings | None = None,
) -> TuneResult:
    """Tune a generator for a target: sample schedules, time them, learn from them, keep the best.

    Args:
        generator: `path.py[:name]`, `path.cpp[:name]` or a built `path.generator[:name]`; several share the run, its
            budget and its cost model, and a `GeneratorSpec` has parameters and argument sets of its own.
        target: name or path of a target profile; None takes that of `options`, else the devices', else this machine's.
        device: 'local', 'qemu', 'hexagon-sim', a device of the inventory, or label:LABEL; several to share the work.
            A phone is its DSP for a Hexagon target. Without one those of `options`, else the free devices of the
            inventory that have the profile, else the profile's default.
        options: everything else, such as `RunOptions.of(budget_s=600, batch_size=16)`; docs/tuning.md lists it.
        run_folder: where everything goes; None makes `tuned/<name>-<target>-<n>`.
        listen: called with every event, from several threads.
        stop: set it, from any thread, to end cleanly with the best so far.

    Raises:
        SdkError: a subclass, for everything that a user can fix.
    """
    call = _Call(listen, stop or StopSignal(), settings or read_settings())
    settings = call.settings
    specs = generator_specs(generator)
    options = with_name_mangling(asked_options(options, target, device), specs)
    load_techniques(options.search)
    _check_shared_inputs(specs, options.inputs)
    for named in specs:
        if named.function_name is not None:
            check_function_name(named.function_name)
    chosen = _choose(options, ", ".join(Path(named.generator).name for named in specs), settings, listen)
    choice = chosen.choice

    def tell(text: str) -> None:
        listen(Notice(text))

    workbench = open_workbench(settings, tell)
    tasks, inputs = tuning_tasks(specs, options, choice.profile.halide_target, workbench, settings, tell)
    options = replace(options, inputs=inputs)
    start = StartWeights(choice.profile)
    if any(task.searches for task in tasks):
        start = choose_start_weights(options.learn.weights, choice.profile, choice.devices, settings)
    spec = RunSpec(tasks, start.profile, choice.parallelism, options)
    folder = run_folder or free_run_folder(Path.cwd(), run_name(specs, tasks), choice.profile.name)
    return _tune(spec, folder, chosen, start, call)


def resume(
    run_folder: Path,
    *,
    changes: Mapping[str, object] | None = None,
    listen: Listener = ignore,
    stop: StopSignal | None = None,
    settings: Settings | None = None,
) -> TuneResult:
    """Go on with a run; it is asked what it was asked when it began.

    Args:
        run_folder: the run's.
        changes: options to change, by their keywords as for `RunOptions.of`; none that says what is tuned.
        listen, stop: as for `autotune`.

    Raises:
        SdkError: a subclass, for everything that a user can fix.
    """
    call = _Call(listen, stop or StopSignal(), settings or read_settings())
    settings = call.settings
    record = read_run_record(run_folder)
    options = with_whole_paths(resumed_options(record, changes or {}))
    load_techniques(options.search)
    tasks = record.spec.tasks
    if changes and "incumbents" in changes:
        tasks = with_incumbents(tasks, options.play_off.incumbents)
    for task in tasks:
        for file in (task.reference.file, task.incumbent):
            if file is not None and not file.is_file():
                raise GeneratorError(
                    f"{file} is missing, and the run in {run_folder} needs it.",
                    next_step="Restore it, or start a new run.",
                )
    devices = replace(options.devices, target=options.devices.target or record.spec.profile.name)
    chosen = _choose(replace(options, devices=devices), ", ".join(t.function_name for t in tasks), settings, listen)
    start = StartWeights(chosen.choice.profile)
    spec = RunSpec(tasks, start.profile, chosen.choice.parallelism, options)
    return _tune(spec, run_folder, chosen, start, call, resume=True)


@dataclass(frozen=True)
class _Call:
    """What a run has of its caller: the budget counts from here."""

    listen: Listener
    stop: StopSignal
    settings: Settings
    started_s: float = field(default_factory=time.monotonic)


def _check_shared_inputs(specs: Sequence[GeneratorSpec], inputs: KernelInputs) -> None:
    if len(specs) > 1 and (inputs.sizes or inputs.scalars or inputs.files):
        raise UsageError(
            "Sizes, scalars and inputs cannot be given to several generators: their arguments differ.",
            next_step="Set sizes with generator parameters, or tune in several runs.",
        )


def _choose(options: RunOptions, title: str, settings: Settings, listen: Listener) -> ChosenDevices:
    farm = wanted_farm(options.farm, options.devices, settings)
    if farm is None:
        chosen = find_devices(options.devices, settings, lambda text: listen(Notice(text)))
    else:
        chosen = find_farm_devices(farm, options, title, settings)
    check_weighted_devices(options.play_off.objective, [device.name for device in chosen.choice.devices])
    return chosen


def _tune(
    spec: RunSpec,
    folder: Path,
    chosen: ChosenDevices,
    start: StartWeights,
    call: _Call,
    resume: bool = False,
) -> TuneResult:
    # Imported here: it costs half a second that a wrong argument need not pay.
    from halide_autotune.autotune_loop.run.tuning import tune

    for message in (chosen.choice.note, start.message):
        if message:
            call.listen(Notice(message))
    with prepared_inputs(spec.options.inputs) as inputs:
        run = PreparedRun(
            spec=spec,
            folder=folder,
            devices=chosen.choice.devices,
            inputs=inputs,
            weights=start.path,
            is_transferred=start.is_transferred,
            resume=resume,
            history=None if spec.options.search.no_history else open_history(call.settings).file,
            farm=chosen.farm,
            report_health=chosen.report_health,
        )
        result = tune(run, chosen.workspace(call.settings), call.listen, call.stop, call.started_s)
    # The run is over, and everything is in its folder.
    try:
        if kept := keep_trained_weights(result, run, call.settings):
            call.listen(Notice(kept))
    except SdkError as error:
        call.listen(Notice(f"The trained weights could not be kept by name: {error}", warning=True))
    try:
        if run.history is not None and known_pipelines(run.folder):
            keep_run(run.folder, open_history(call.settings))
    except SdkError as error:
        call.listen(Notice(f"What was timed could not be kept for later runs: {error}", warning=True))
    return result
