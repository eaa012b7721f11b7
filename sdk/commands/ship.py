"""`sdk ship`: write tuned headers to commit, and check that they still fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halide_autotune.sdk.display.quantities import unit_of
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import JsonOption, ParameterOption
from halide_autotune.sdk.options.ship_options import ShipOptions
from halide_autotune.sdk.options.with_options import with_options
from halide_autotune.sdk.output import make_console, print_json, show_progress
from halide_autotune.targets.errors import UsageError

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.shipping.check_folder import CheckedFolder
    from halide_autotune.autotune_loop.shipping.ship_manifest import ShipManifest


@with_options
def ship(
    *,
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Run folders; with --check, a shipped folder.",
            autocompletion=COMPLETIONS["runs"],
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write, or to add to.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show the loops of the winners instead.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Check a shipped folder instead.")] = False,
    options: ShipOptions,
    parameters: ParameterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the winners of runs to a folder to commit, as C++ headers and Python modules.

    Example: sdk ship tuned/blur-arm64-1 tuned/blur-host-1 -o schedules

    In CI: sdk ship --check schedules --generator blur.cpp
    """
    from halide_autotune.sdk.api.ship import ship as ship_runs

    if check:
        if len(folders) != 1 or output is not None:
            raise UsageError("--check takes one shipped folder and no -o.")
        _check(folders[0], options, parameters or [], as_json)
        return
    if show:
        _show(folders, as_json)
        return
    if output is None:
        raise UsageError("No folder to write was given.", next_step="Name it with -o, such as -o schedules.")
    if parameters:
        raise UsageError(
            "-p works with --check only: a schedule is shipped with the parameters that it was tuned with.",
            next_step="Leave -p out.",
        )
    with show_progress("reading the runs", quiet=as_json) as progress:
        manifest = ship_runs(folders, output, options, progress=progress)
    if as_json:
        print_json({"folder": str(output), **manifest.to_dict()})
    else:
        _print_shipped(output, manifest)


def _show(runs: list[Path], as_json: bool) -> None:
    from halide_autotune.autotune_loop.parameters.space import set_text
    from halide_autotune.autotune_loop.schedule.print_loops import print_loops
    from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule
    from halide_autotune.autotune_loop.shipping.run_winners import read_run_winners

    shown = {
        str(folder): {
            run.name: print_loops(run.schedule) if isinstance(run, RunSchedule) else set_text(run.values)
            for run in read_run_winners(folder)
        }
        for folder in runs
    }
    if as_json:
        print_json(shown)
        return
    for by_name in shown.values():
        for loops in by_name.values():
            typer.echo(loops)


def _print_shipped(output: Path, manifest: ShipManifest) -> None:
    from halide_autotune.autotune_loop.parameters.space import set_text
    from halide_autotune.sdk.display.clock_lines import clock_lines

    facts_of_all = [one.provenance for one in manifest.schedules] + [one.provenance for one in manifest.parameter_sets]
    for line in clock_lines(str(facts["clock"]) for facts in facts_of_all):
        make_console().print(line)
    for schedule in manifest.schedules:
        _print_facts(schedule.name, schedule.provenance, "schedule", schedule.for_size)
        for file in schedule.files:
            typer.echo(f"  {output / file}")
        for outcome in schedule.sizes or ():
            typer.echo(f"  at {outcome.size}: {outcome.verdict.value}{outcome.message and '. ' + outcome.message}")
    for one in manifest.parameter_sets:
        _print_facts(one.name, one.provenance, "parameters")
        typer.echo(f"  {set_text(one.tuned)}")
        for name in one.files:
            typer.echo(f"  {output / name}")
    for schedule in manifest.schedules:
        if schedule.by_size:
            own = ", ".join(one.for_size for one in manifest.of_target(schedule) if one.for_size)
            typer.echo(f"for each size: build a kernel for {own} and one for all sizes, and {schedule.by_size}")
    for name in dict.fromkeys(schedule.name for schedule in manifest.schedules):
        typer.echo(f'use it: #include "{name}.schedule.h", or import {name}_schedule')


def _print_facts(name: str, facts: Mapping[str, Any], what: str, for_size: str = "") -> None:
    from halide_autotune.devices.device import Clock

    mark = Clock.mark_of(str(facts["clock"]))
    unit = unit_of((facts["tuned_ms"], facts["default_ms"]))
    default = "" if facts["default_ms"] is None else f", the default {what} {unit.text(facts['default_ms'], mark)}"
    # A folder that an older version shipped to does not say of what a time is.
    timed = f", {facts['tuned_from']}" if "tuned_from" in facts else ""
    at = for_size and f" at {for_size}"
    typer.echo(f"{name} for {facts['target_profile']}{at}: {unit.text(facts['tuned_ms'], mark)}{timed}{default}")
    if facts["verdict"]:
        typer.echo(f"  play-off: {facts['verdict']}")


def _check(folder: Path, options: ShipOptions, parameters: list[str], as_json: bool) -> None:
    from halide_autotune.sdk.api.ship import check_shipped

    with show_progress("checking", quiet=as_json) as progress:
        checked = check_shipped(
            folder, generators=options.generators, parameters=parameters, build=options.build, progress=progress
        )
    if as_json:
        print_json({"problems": checked.problems, "notes": checked.notes, "schedules_compared": checked.schedules})
    else:
        _print_checked(folder, checked)
    if checked.problems:
        raise typer.Exit(1)


def _print_checked(folder: Path, checked: CheckedFolder) -> None:
    for problem in checked.problems:
        typer.echo(f"{folder}: {problem}", err=True)
    for note in checked.notes:
        typer.echo(f"note: {note}")
    if not checked.problems:
        compared = f", {checked.schedules} compared with their generators" if checked.schedules else ""
        typer.echo(f"{folder} is unchanged since it was shipped{compared}.")
