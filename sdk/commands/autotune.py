"""`sdk autotune`: the whole loop for one generator and one target."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sdk.options import autotune_options as options
from sdk.options.autotune_arguments import DEFAULTS, AutotuneArguments

if TYPE_CHECKING:
    from autotune_loop.run.result import TuneResult
    from devices.timing.measure_settings import KernelInputs
    from sdk.display.guarded_display import GuardedDisplay
    from sdk.options.autotune_call import AutotuneCall
    from targets.process.stop_signal import StopSignal

_INTERRUPTED = 130


def register(application: typer.Typer) -> None:
    """Add the command to the application."""
    application.command("autotune")(autotune)


def autotune(
    generator: options.Generators = None,
    target: options.OptionalTarget = None,
    parameters: options.Parameters = None,
    generator_arg_sets: options.ArgumentSets = None,
    function_name: options.FunctionName = None,
    size: options.Sizes = None,
    scalar: options.Scalars = None,
    input: options.Inputs = None,
    input_seed: options.InputSeed = DEFAULTS.input_seed,
    device: options.Devices = None,
    inventory: options.Inventory = None,
    device_patience: options.DevicePatience = DEFAULTS.device_patience,
    clock: options.EmulatorClock = None,
    hexagon_sdk_root: options.HexagonSdkRoot = None,
    scheduler: options.Scheduler = None,
    farm_certificates: options.FarmCertificates = None,
    priority: options.Priority = DEFAULTS.priority,
    parallelism: options.Parallelism = None,
    num_batches: options.Rounds = DEFAULTS.num_batches,
    batch_size: options.BatchSize = DEFAULTS.batch_size,
    budget: options.Budget = None,
    incumbent: options.Incumbents = None,
    objective: options.ObjectiveName = None,
    device_weight: options.DeviceWeights = None,
    worst_tolerance: options.WorstTolerance = DEFAULTS.worst_tolerance,
    play_off_turns: options.PlayOffTurns = DEFAULTS.play_off_turns,
    run_dir: options.RunFolder = None,
    resume: options.Resume = False,
    replay: options.Replay = None,
    seed: options.Seed = DEFAULTS.seed,
    weights: options.WeightsFile = None,
    loss: options.LossName = DEFAULTS.loss,
    epochs: options.Epochs = DEFAULTS.epochs,
    learning_rate: options.LearningRate = DEFAULTS.learning_rate,
    pool_factor: options.PoolFactor = DEFAULTS.pool_factor,
    random_share: options.RandomShare = DEFAULTS.random_share,
    diversity: options.Diversity = DEFAULTS.diversity,
    jobs: options.Jobs = None,
    search_limit: options.SearchLimit = DEFAULTS.search_limit,
    full_search_limit: options.FullSearchLimit = None,
    memory_limit: options.MemoryLimit = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    plain: options.Plain = False,
) -> None:
    """Tune a generator for a device: sample schedules, time them, learn from the times, keep the best.

    Ctrl-C ends it in order and keeps the best; --resume goes on.

    Example: sdk autotune blur.py --target arm64 --budget 10m
    """
    # The parameters of this function are the fields, one for one.
    _run(AutotuneArguments(**locals()))


def _run(given: AutotuneArguments) -> None:
    if given.replay is not None:
        from sdk.commands.autotune_replay import run_replay

        run_replay(given, given.replay)
        return
    from autotune_loop.run.result import Outcome
    from sdk.commands.autotune_follow_up import follow_up
    from sdk.display.display import choose_display
    from sdk.display.guarded_display import GuardedDisplay
    from sdk.options.autotune_call import read_arguments
    from sdk.project.file import find_project
    from sdk.service.interrupts import stop_on_interrupt
    from targets.errors import DeviceError, GeneratorError
    from targets.process.stop_signal import StopSignal

    call = read_arguments(given, find_project(Path.cwd()))
    display = choose_display(as_json=given.as_json, quiet=given.quiet, plain=given.plain)
    stop = StopSignal()
    guarded = GuardedDisplay(display, stop)
    with stop_on_interrupt(stop, guarded.stopping), contextlib.closing(guarded):
        result = _tune(call, guarded, stop)
    guarded.raise_trouble()
    display.finish(result, follow_up(given, call, result))
    if result.outcome is Outcome.INTERRUPTED:
        raise typer.Exit(_INTERRUPTED)
    if result.outcome is Outcome.DEVICES_LOST:
        raise DeviceError(
            "No device was left; everything measured is saved.", next_step="Mend one, then go on with --resume."
        )
    if not any(tuned.header for tuned in result.tuned):
        raise GeneratorError(
            f"No schedule of {result.generator} was timed, so there is none to use.",
            next_step="See the warnings of the run; where there are none, give it a longer --budget and --resume.",
        )


def _tune(call: AutotuneCall, display: GuardedDisplay, stop: StopSignal) -> TuneResult:
    from sdk.api.autotune import autotune as tune
    from sdk.settings import read_settings

    with tempfile.TemporaryDirectory(prefix="sdk-inputs-") as folder:
        return tune(
            call.generators,
            target=call.target,
            device=call.devices,
            inventory=call.inventory,
            patience_s=call.patience_s,
            clock=call.clock,
            hexagon_sdk_root=call.hexagon_sdk_root,
            scheduler=call.scheduler,
            farm_certificates=call.farm_certificates,
            priority=call.priority,
            incumbents=call.incumbents,
            objective=call.objective,
            play_off_turns=call.play_off_turns,
            parallelism=call.parallelism,
            run_folder=call.run_folder,
            resume=call.resume,
            rounds=call.rounds,
            budget_s=call.budget_s,
            weights=call.weights,
            sampling=call.sampling,
            learning=call.learning,
            inputs=_converted_inputs(call, Path(folder)),
            build_jobs=call.build_jobs,
            search_limit_s=call.search_limit_s,
            full_search_limit_s=call.full_search_limit_s,
            memory_limit_bytes=call.memory_limit_bytes,
            listen=display.listen,
            stop=stop,
            settings=read_settings(),
        )


def _converted_inputs(call: AutotuneCall, folder: Path) -> KernelInputs:
    from dataclasses import replace

    from targets.build.runner_input_file import convert_npy_file

    files = {name: folder / f"{name}.raw" for name in call.input_files}
    for name, npy_file in call.input_files.items():
        convert_npy_file(npy_file, files[name])
    return replace(call.inputs, files=files)
