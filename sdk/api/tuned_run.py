"""A run from what is asked to its result, with nothing kept for later runs: that is `sdk.autotune`'s."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.search.techniques.registry import load_techniques
from halide_autotune.autotune_loop.specification.objective import check_weighted_devices
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.options.generator_spec import (
    GeneratorSpec,
    run_name,
    tuning_tasks,
    with_incumbents,
    with_name_mangling,
)
from halide_autotune.sdk.options.resume_options import resumed_options
from halide_autotune.sdk.project.history import open_history
from halide_autotune.sdk.project.input_files import prepared_inputs
from halide_autotune.sdk.project.preparation import check_function_name, free_run_folder, open_workbench
from halide_autotune.sdk.select.chosen_devices import ChosenDevices, find_devices
from halide_autotune.sdk.select.farm_devices import find_farm_devices, wanted_farm
from halide_autotune.sdk.select.start_weights import StartWeights, choose_start_weights
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.options import with_whole_paths


@dataclass(frozen=True)
class Call:
    """What a run has of its caller: the budget counts from here.

    Attributes:
        only_records: see `PreparedRun`.
    """

    listen: Listener
    stop: StopSignal
    settings: Settings
    only_records: bool = False
    started_s: float = field(default_factory=time.monotonic)


def tune_new(
    specs: Sequence[GeneratorSpec], options: RunOptions, run_folder: Path | None, call: Call
) -> tuple[PreparedRun, TuneResult]:
    """Tune as `autotune` does, and keep nothing for later runs.

    Args:
        options: as `asked_options` gives them.

    Raises:
        SdkError: a subclass, for everything that a user can fix.
    """
    settings, listen = call.settings, call.listen
    options = with_name_mangling(options, specs)
    load_techniques(options.search)
    _check_shared_inputs(specs, options.inputs)
    for named in specs:
        if named.function_name is not None:
            check_function_name(named.function_name)
    chosen = devices_of_run(options, ", ".join(Path(named.generator).name for named in specs), settings, listen)
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


def tune_further(run_folder: Path, changes: Mapping[str, object], call: Call) -> tuple[PreparedRun, TuneResult]:
    """Go on as `resume` does, and keep nothing for later runs.

    Raises:
        SdkError: a subclass, for everything that a user can fix.
    """
    settings, listen = call.settings, call.listen
    record = read_run_record(run_folder)
    options = with_whole_paths(resumed_options(record, changes))
    load_techniques(options.search)
    tasks = record.spec.tasks
    if "incumbents" in changes:
        tasks = with_incumbents(tasks, options.play_off.incumbents)
    for task in tasks:
        for file in (task.reference.file, task.incumbent):
            if file is not None and not file.is_file():
                raise GeneratorError(
                    f"{file} is missing, and the run in {run_folder} needs it.",
                    next_step="Restore it, or start a new run.",
                )
    devices = replace(options.devices, target=options.devices.target or record.spec.profile.name)
    chosen = devices_of_run(
        replace(options, devices=devices), ", ".join(t.function_name for t in tasks), settings, listen
    )
    start = StartWeights(chosen.choice.profile)
    spec = RunSpec(tasks, start.profile, chosen.choice.parallelism, options)
    return _tune(spec, run_folder, chosen, start, call, resume=True)


def _check_shared_inputs(specs: Sequence[GeneratorSpec], inputs: KernelInputs) -> None:
    if len(specs) > 1 and (inputs.sizes or inputs.scalars or inputs.files):
        raise UsageError(
            "Sizes, scalars and inputs cannot be given to several generators: their arguments differ.",
            next_step="Set sizes with generator parameters, or tune in several runs.",
        )


def devices_of_run(options: RunOptions, title: str, settings: Settings, listen: Listener) -> ChosenDevices:
    """The devices that a run is for.

    Args:
        title: what a farm's users are shown of it.

    Raises:
        SdkError: a subclass, for everything that a user can fix.
    """
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
    call: Call,
    resume: bool = False,
) -> tuple[PreparedRun, TuneResult]:
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
            nest_prior=start.nest_prior,
            resume=resume,
            history=None if spec.options.search.no_history else open_history(call.settings).file,
            farm=chosen.farm,
            only_records=call.only_records,
            report_health=chosen.report_health,
        )
        result = tune(run, chosen.workspace(call.settings), call.listen, call.stop, call.started_s)
    return run, result
