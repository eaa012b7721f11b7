"""`sdk autotune --replay RUN`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.display.quantities import count_text, duration_text, time_text
from halide_autotune.sdk.options.autotune_options import CommandOptions, GeneratorOptions
from halide_autotune.sdk.output import print_json, show_progress
from halide_autotune.sdk.project.file import find_project
from halide_autotune.sdk.service.interrupts import stop_on_interrupt
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.options import options_of

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.report.replay import Replay, ReplayedRound

_NEAR_SHARES = (0.05, 0.01)


def run_replay(values: Mapping[str, object], command: CommandOptions, folder: Path) -> None:
    """Replay and print; a line a round as it goes.

    Raises:
        SdkError: one of its children.
    """
    from halide_autotune.sdk.api.replay import replay
    from halide_autotune.sdk.options.autotune_options import run_options

    if values.get("generator"):
        raise UsageError("--replay takes its schedules from the run; leave the generator out.")
    if command.resume:
        raise UsageError("--replay looks recorded schedules up, and --resume times new ones; leave one of them out.")
    if unused := _unused(values):
        raise UsageError(
            f"--replay takes what was tuned, and what it was timed on, from the run; leave out {', '.join(unused)}."
        )
    if command.notify:
        raise UsageError("--notify tells how a run ends, and a replay is none.", next_step="Leave --notify out.")
    options = run_options(values, find_project(Path.cwd()))
    stop = StopSignal()
    started_s = time.monotonic()
    with (
        show_progress("starting the cost model", quiet=command.as_json or command.quiet) as progress,
        stop_on_interrupt(stop, lambda: None),
    ):
        results = replay(folder, options=options, listen=lambda done: progress(_round_text(done)), stop=stop)
    duration_s = time.monotonic() - started_s
    if command.as_json:
        print_json({"run": str(folder), "duration_s": duration_s, "tasks": [_as_dict(result) for result in results]})
    else:
        for result in results:
            _print(result)
        looked_up = sum(len(result.order_ms) for result in results)
        typer.echo(f"{count_text(looked_up, 'recorded schedule')} in {duration_text(duration_s)}; no device was used")
    if stop.is_set():
        raise typer.Exit(130)


def _unused(values: Mapping[str, object]) -> list[str]:
    """The options that were typed and that say what is tuned, how it is called, or where it is timed."""
    of_run = [option for option in options_of(RunOptions) if option.path[0] in ("devices", "inputs")]
    return [option.label for option in (*options_of(GeneratorOptions), *of_run) if option.keyword in values]


def _round_text(done: ReplayedRound) -> str:
    correlation = "" if done.correlation is None else f", rank correlation {done.correlation:.2f}"
    best, shuffled = time_text(done.best_ms), time_text(done.shuffled_best_ms)
    return f"round {done.round_index + 1}: {done.timed} looked up, best {best} (at random {shuffled}){correlation}"


def _print(result: Replay) -> None:
    found = result.rounds[-1].best_ms if result.rounds else result.best_ms
    typer.echo(
        f"argument set {result.task_index + 1}: best {time_text(found)} of {count_text(result.recorded, 'schedule')}"
        f" (the best of all is {time_text(result.best_ms)})"
    )
    for share in _NEAR_SHARES:
        count = result.samples_until(share)
        when = "not reached" if count is None else f"after {count_text(count, 'schedule')}"
        typer.echo(f"  within {100 * share:.0f} % of it: {when}")


def _as_dict(result: Replay) -> dict[str, object]:
    fields = asdict(result)
    del fields["order_ms"]
    return {**fields, "samples_until": {str(share): result.samples_until(share) for share in _NEAR_SHARES}}
