"""`sdk.autotune` and `sdk.resume`: the whole job, from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from halide_autotune.autotune_loop.events import Listener, Notice, ignore
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.search.known.histories import histories_of
from halide_autotune.autotune_loop.search.known.known_schedules import known_pipelines
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.sdk.api.tuned_run import Call, tune_further, tune_new
from halide_autotune.sdk.options.generator_spec import GeneratorSpec, asked_options, generator_specs
from halide_autotune.sdk.project.history import timed_schedules
from halide_autotune.sdk.select.start_weights import keep_trained_weights
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.process.stop_signal import StopSignal


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
    call = Call(listen, stop or StopSignal(), settings or read_settings())
    run, result = tune_new(generator_specs(generator), asked_options(options, target, device), run_folder, call)
    _keep_for_later(run, result, call)
    return result


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
    call = Call(listen, stop or StopSignal(), settings or read_settings())
    run, result = tune_further(run_folder, changes or {}, call)
    _keep_for_later(run, result, call)
    return result


def _keep_for_later(run: PreparedRun, result: TuneResult, call: Call) -> None:
    """The run is over, and everything is in its folder: what fails here is told."""
    try:
        if kept := keep_trained_weights(result, run, call.settings):
            call.listen(Notice(kept))
    except SdkError as error:
        call.listen(Notice(f"The trained weights could not be kept by name: {error}", warning=True))
    histories = histories_of(run.history, run.farm)
    try:
        if not (histories and known_pipelines(run.folder)):
            return
        schedules, nests = timed_schedules(run.folder)
    except SdkError as error:
        _not_kept(error, call)
        return
    for history in histories:
        try:
            history.add(schedules, nests)
        except SdkError as error:
            _not_kept(error, call)


def _not_kept(error: SdkError, call: Call) -> None:
    call.listen(Notice(f"What was timed could not be kept for later runs: {error}", warning=True))
