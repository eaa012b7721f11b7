"""`sdk autotune`: the whole loop for one target."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.options.autotune_options import CommandOptions, GeneratorOptions
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.project.file import find_project
from halide_autotune.sdk.service.interrupts import stop_on_interrupt
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.process.stop_signal import StopSignal

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.run.result import TuneResult

_Tune: TypeAlias = "Callable[..., TuneResult]"


@with_options
def autotune(typed: Annotated[Mapping[str, Any], Takes(GeneratorOptions, RunOptions)], command: CommandOptions) -> None:
    """Tune a generator for a device: sample schedules, time them, learn from the times, keep the best.

    Ctrl-C stops it and keeps the best; --resume continues it.

    Example: sdk autotune blur.py --target arm64 --budget 10m
    """
    _run(typed, command)


def _run(values: Mapping[str, object], command: CommandOptions) -> None:
    if command.replay is not None:
        from halide_autotune.sdk.commands.autotune.replay import run_replay

        run_replay(values, command, command.replay)
        return
    from halide_autotune.sdk.display.display import STOPPING, GuardedDisplay, choose_display
    from halide_autotune.sdk.service.notify.notifier import choose_notifiers

    notifiers = choose_notifiers(command.notify, read_settings())
    display = choose_display(as_json=command.as_json, quiet=command.quiet, plain=command.plain, verbose=command.verbose)
    stop = StopSignal()
    guarded = GuardedDisplay(display, stop)
    tune = _prepare(values, command, guarded.begin)
    # Imported here: it takes long, and by now the user has been shown something.
    from halide_autotune.sdk.commands.autotune.follow_up import check_outcome, follow_up
    from halide_autotune.sdk.service.notify.run_end import RunEnd

    end = RunEnd(notifiers, _warn)
    try:
        with stop_on_interrupt(stop, lambda: guarded.listen(STOPPING)), contextlib.closing(guarded):
            result = tune(listen=end.watching(guarded.listen), stop=stop)
    except Exception as error:
        end.failed(error)
        raise
    steps = follow_up(result)
    try:
        guarded.raise_trouble()
        display.finish(result, steps)
    finally:
        # Also where nobody sees the result, because the terminal is gone.
        end.finished(result, steps)
    check_outcome(result)


def _warn(text: str) -> None:
    typer.echo(f"sdk: warning: {text}", err=True)


def _prepare(values: Mapping[str, object], command: CommandOptions, begin: Callable[[], None]) -> _Tune:
    """Check what is asked; returns what does it.

    Args:
        begin: called when all is well, before what takes long.
    """
    from halide_autotune.sdk.options.autotune_options import given_generators, run_options
    from halide_autotune.sdk.options.resume_options import resumed_folder

    project = find_project(Path.cwd())
    if command.resume:
        folder = resumed_folder(values, command.run_folder, project)
        begin()
        from halide_autotune.sdk.api.autotune import resume

        return partial(resume, folder, changes=values)
    generators, options = given_generators(values, project), run_options(values, project)
    begin()
    from halide_autotune.sdk.api.autotune import autotune as tune

    return partial(tune, generators, options=options, run_folder=command.run_folder)
