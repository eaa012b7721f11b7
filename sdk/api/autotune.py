"""`sdk.autotune`: the whole job, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from autotune_loop.events import Listener, Notice, ignore
from autotune_loop.farm.fair_share import RunPriority
from autotune_loop.run.result import TuneResult
from autotune_loop.specification.objective import LOOKS, Objective
from autotune_loop.specification.tune_request import Folders, LearningOptions, SamplingOptions, TuneRequest
from devices.timing.measure_settings import KernelInputs
from sdk.options.generator_spec import GeneratorSpec, generator_specs, run_name, tuning_tasks
from sdk.options.objective_arguments import check_weighted_devices
from sdk.project.preparation import (
    check_function_name,
    free_run_folder,
    open_workbench,
)
from sdk.project.run_folders import newest_run_folder
from sdk.select.chosen_devices import device_names, find_devices
from sdk.select.farm_devices import find_farm_devices, wanted_farm
from sdk.select.start_weights import choose_start_weights, keep_trained_weights
from sdk.settings import Settings, read_settings
from targets.errors import SdkError, UsageError
from targets.process.stop_signal import StopSignal


def autotune(
    generator: str | Sequence[str | GeneratorSpec],
    *,
    target: str | None = None,
    device: str | Sequence[str] | None = None,
    inventory: Path | None = None,
    parameters: Iterable[str] = (),
    argsets: Sequence[Iterable[str]] = ((),),
    function_name: str | None = None,
    incumbents: Mapping[str, Path] | None = None,
    parallelism: int | None = None,
    run_folder: Path | None = None,
    resume: bool = False,
    rounds: int = 100,
    budget_s: float | None = None,
    weights: str | Path | None = None,
    sampling: SamplingOptions | None = None,
    learning: LearningOptions | None = None,
    objective: Objective | None = None,
    play_off_turns: int = TuneRequest.play_off_turns,
    inputs: KernelInputs | None = None,
    build_jobs: int | None = None,
    search_limit_s: float = 60.0,
    full_search_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
    patience_s: float = TuneRequest.patience_s,
    clock: str | None = None,
    hexagon_sdk_root: Path | None = None,
    scheduler: str | None = None,
    farm_certificates: Path | None = None,
    priority: RunPriority = RunPriority.NORMAL,
    listen: Listener = ignore,
    stop: StopSignal | None = None,
    settings: Settings | None = None,
) -> TuneResult:
    """Tune a generator for a target: sample schedules, time them, learn from them, keep the best.

    Args:
        generator: `path.py[:name]`, `path.cpp[:name]` or a built `path.generator[:name]`; several share the run, its
            budget and its cost model, and a `GeneratorSpec` has parameters of its own.
        target: name or path of a target profile; None takes the devices', else this machine's.
        device: 'local', 'qemu', 'hexagon-sim', a device of the inventory, or label:LABEL; several to share the work.
            A phone is its DSP for a Hexagon target. None takes the free devices of the inventory that have the profile,
            else the profile's default.
        inventory: a devices.toml; None looks for one as the command line does.
        patience_s: how long the run waits when no device is left.
        clock: of this machine's emulator: 'simulated' or 'emulated'; None takes the first where it can be had.
        hexagon_sdk_root: Qualcomm's SDK, whose tools build what is tuned for Hexagon, and whose simulator or
            run_main_on_hexagon runs it; None takes the one that HEXAGON_SDK_ROOT names, or zig and QEMU.
        scheduler: of a farm, whose devices are taken instead: tls://HOST:8786; 'none' for this machine's. None takes
            SDK_SCHEDULER, else the one that sdk.toml names, else none.
        farm_certificates: a folder; None takes the one in the user's settings.
        priority: of the run among the others of the farm. With `build_jobs` this machine builds, too.
        parameters: generator parameters, each `key=value`.
        argsets: further parameters, one collection for each argument set; every set is tuned.
        function_name: name of the tuned function; None takes the generator's.
        incumbents: headers in use today, which stay unless they are beaten, by the name of what is tuned (the X of
            best.X.schedule.h), or '' where that is but one thing.
        parallelism: threads of the device, or multiprocessors of its card; None takes the device's own.
        run_folder: where everything goes; None makes tuned/<name>-<target>-<n>, or resumes the newest of them.
        resume: go on with the run in `run_folder`.
        rounds, budget_s: when to end, whichever comes first.
        weights: a `.weights` file, a name that `sdk weights` lists, or `baseline` (Halide's own) to start from; None
            takes the profile's, else the nearest that are known.
        objective: what the winner is to be good at where there are several devices; None is the geometric mean.
        play_off_turns: the most turns in which the winner must prove itself, at least 8.
        build_jobs, search_limit_s, full_search_limit_s, memory_limit_bytes: of candidates under construction.
        listen: called with every event, from several threads.
        stop: set it, from any thread, to end cleanly with the best so far.

    Raises:
        SdkError: one of its children, for everything that a user can mend.
    """
    settings = settings or read_settings()
    specs = generator_specs(generator, parameters, argsets, function_name)
    wanted = objective or Objective()
    _check(specs, inputs, play_off_turns)
    names = device_names(device)
    farm = wanted_farm(scheduler, farm_certificates, names, inventory, settings)
    if farm is None:
        chosen = find_devices(
            target,
            names,
            parallelism,
            inventory,
            settings,
            lambda text: listen(Notice(text)),
            clock,
            hexagon_sdk_root,
        )
    else:
        if clock is not None:
            raise UsageError("--clock is of this machine's emulator, and the devices are a farm's.")
        if hexagon_sdk_root is not None:
            raise UsageError("--hexagon-sdk-root is for this machine, and the devices are a farm's.")
        title = ", ".join(Path(spec.generator).name for spec in specs)
        chosen = find_farm_devices(farm, target, names, parallelism, priority, title, build_jobs or 0, settings)
    check_weighted_devices(wanted, [device.name for device in chosen.choice.devices])
    profile, threads = chosen.choice.profile, chosen.choice.parallelism
    if run_folder is None and len(specs) == 1 and specs[0].function_name is not None:
        # Before the generator is built, so that a missing run is said at once.
        run_folder = _run_folder(check_function_name(specs[0].function_name), profile.name, resume)
    workbench = open_workbench(settings)
    tasks = tuning_tasks(specs, incumbents or {}, workbench, settings)
    start = choose_start_weights(weights, profile, chosen.choice.devices, settings, resume=resume)
    request = TuneRequest(
        tasks=tasks,
        profile=start.profile,
        devices=chosen.choice.devices,
        parallelism=threads,
        run_folder=run_folder or _run_folder(run_name(specs, tasks), profile.name, resume),
        rounds=rounds,
        budget_s=budget_s,
        weights=start.path,
        is_transferred=start.is_transferred,
        sampling=sampling or SamplingOptions(),
        learning=learning or LearningOptions(),
        inputs=inputs or KernelInputs(),
        resume=resume,
        build_jobs=build_jobs,
        search_limit_s=search_limit_s,
        full_search_limit_s=full_search_limit_s,
        memory_limit_bytes=memory_limit_bytes,
        connections=chosen.connections,
        patience_s=patience_s,
        farm=chosen.farm,
        objective=wanted,
        play_off_turns=play_off_turns,
    )
    # Imported here: it costs half a second that a wrong argument need not pay.
    from autotune_loop.run.tuning import tune

    for message in (chosen.choice.note, start.message):
        if message:
            listen(Notice(message))
    folders = Folders(
        settings.cache_folder,
        settings.cache_folder / "locks",
        settings.environment,
        chosen.report_health,
        settings.ndk_root,
    )
    result = tune(request, folders, listen, stop or StopSignal())
    try:
        kept = keep_trained_weights(result, request, settings)
    except SdkError as error:
        # The run is over and its weights are in its folder.
        listen(Notice(f"The trained weights could not be kept by name: {error}", warning=True))
    else:
        if kept:
            listen(Notice(kept))
    return result


def _check(specs: Sequence[GeneratorSpec], inputs: KernelInputs | None, play_off_turns: int) -> None:
    if play_off_turns < LOOKS[0]:
        raise UsageError(f"A play-off needs at least {LOOKS[0]} turns to prove anything, not {play_off_turns}.")
    if len(specs) > 1 and inputs is not None and (inputs.sizes or inputs.scalars or inputs.files):
        raise UsageError(
            "Sizes, scalars and inputs cannot be given to several generators: their arguments differ.",
            next_step="Set sizes with generator parameters, or tune in several runs.",
        )


def _run_folder(name: str, target: str, resume: bool) -> Path:
    return newest_run_folder(Path.cwd(), name, target) if resume else free_run_folder(Path.cwd(), name, target)
