"""`sdk.autotune`: the whole job, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from autotune_loop.events import Listener, Notice, ignore
from autotune_loop.result import TuneResult
from autotune_loop.tune_request import Folders, LearningOptions, SamplingOptions, TuneRequest
from devices.measure_settings import KernelInputs
from sdk.chosen_devices import device_names, find_devices
from sdk.preparation import (
    check_function_name,
    free_run_folder,
    open_named_generator,
    open_workbench,
)
from sdk.run_folders import newest_run_folder
from sdk.settings import Settings, read_settings
from targets.generator_reference import parse_parameters
from targets.stop_signal import StopSignal


def autotune(
    generator: str,
    *,
    target: str | None = None,
    device: str | Sequence[str] | None = None,
    inventory: Path | None = None,
    parameters: Iterable[str] = (),
    argsets: Sequence[Iterable[str]] = ((),),
    function_name: str | None = None,
    parallelism: int | None = None,
    run_folder: Path | None = None,
    resume: bool = False,
    rounds: int = 100,
    budget_s: float | None = None,
    weights: Path | None = None,
    sampling: SamplingOptions | None = None,
    learning: LearningOptions | None = None,
    inputs: KernelInputs | None = None,
    build_jobs: int | None = None,
    search_limit_s: float = 60.0,
    full_search_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
    patience_s: float = TuneRequest.patience_s,
    listen: Listener = ignore,
    stop: StopSignal | None = None,
    settings: Settings | None = None,
) -> TuneResult:
    """Tune a generator for a target: sample schedules, time them, learn from them, keep the best.

    Args:
        generator: `path.py[:name]`, `path.cpp[:name]` or a built `path.generator[:name]`.
        target: name or path of a target profile; None takes the devices', else this machine's.
        device: 'local', 'qemu', a device of the inventory, or label:LABEL; several to share the work. None takes the
            free devices of the inventory that have the profile, else the profile's default.
        inventory: a devices.toml; None looks for one as the command line does.
        patience_s: how long the run waits when no device is left.
        parameters: generator parameters, each `key=value`.
        argsets: further parameters, one collection for each argument set; every set is tuned.
        function_name: name of the tuned function; None takes the generator's.
        parallelism: threads of the device; None takes the profile's (on this machine: its cores).
        run_folder: where everything goes; None makes tuned/<name>-<target>-<n>, or resumes the newest of them.
        resume: go on with the run in `run_folder`.
        rounds, budget_s: when to end, whichever comes first.
        weights: a `.weights` file to start from; None takes the profile's.
        build_jobs, search_limit_s, full_search_limit_s, memory_limit_bytes: of candidates under construction.
        listen: called with every event, from several threads.
        stop: set it, from any thread, to end cleanly with the best so far.

    Raises:
        SdkError: one of its children, for everything that a user can mend.
    """
    settings = settings or read_settings()
    chosen = find_devices(
        target, device_names(device), parallelism, inventory, settings, lambda text: listen(Notice(text))
    )
    profile, threads = chosen.choice.profile, chosen.choice.parallelism
    if run_folder is None and function_name is not None:
        # Before the generator is built, so that a missing run is said at once.
        run_folder = _run_folder(check_function_name(function_name), profile.name, resume)
    workbench = open_workbench(settings)
    reference, program = open_named_generator(generator, parameters, workbench, settings)
    program.close()
    assert reference.name is not None
    name = check_function_name(function_name or reference.name)
    request = TuneRequest(
        reference=replace(reference, parameters={}),
        function_name=name,
        profile=profile,
        devices=chosen.choice.devices,
        parallelism=threads,
        run_folder=run_folder or _run_folder(name, profile.name, resume),
        argsets=tuple({**reference.parameters, **parse_parameters(argset)} for argset in argsets),
        rounds=rounds,
        budget_s=budget_s,
        weights=weights,
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
    )
    # Imported here: the engine costs half a second that a wrong argument need not pay.
    from autotune_loop.tuning import tune

    if chosen.choice.note:
        listen(Notice(chosen.choice.note))
    folders = Folders(
        settings.cache_folder,
        settings.cache_folder / "locks",
        settings.environment,
        chosen.report_health,
        settings.ndk_root,
    )
    return tune(request, folders, listen, stop or StopSignal())


def _run_folder(name: str, target: str, resume: bool) -> Path:
    return newest_run_folder(Path.cwd(), name, target) if resume else free_run_folder(Path.cwd(), name, target)
