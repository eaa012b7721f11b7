"""`sdk schedule`: schedules as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from halide_autotune.autotune_loop.schedule.show import ShowFormat
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.options.autotune_options import (
    ONE_GENERATOR,
    GeneratorOptions,
    chosen_options,
    given_generator,
)
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.project.file import find_project
from halide_autotune.targets.values.options import Option

group = typer.Typer(
    name="schedule",
    help="Show schedules: a header's, or what a generator's author wrote."
    "\n\nExample: sdk schedule show blur.schedule.h",
)
_TAKEN = ("target", "target_features")
_SUFFIXES = (".h", ".hpp", ".json")


@dataclass(frozen=True)
class ShowOptions:
    """How a schedule is shown."""

    format: Annotated[
        ShowFormat,
        Option(
            "--format",
            metavar="FORMAT",
            help="loops, cpp (a header), python (a module) or json (what programs read and change).",
        ),
    ] = ShowFormat.LOOPS


@group.command("show")
@with_options
def show(
    *,
    schedule: Annotated[
        str | None,
        typer.Argument(
            metavar="GENERATOR|HEADER",
            help="A generator as for `sdk build`, whose own schedule is shown; or a .schedule.h; or a .json of this.",
        ),
    ] = None,
    typed: Annotated[Mapping[str, Any], Takes(GeneratorOptions, RunOptions, only=(*ONE_GENERATOR, *_TAKEN))],
    command: ShowOptions,
) -> None:
    """Print a schedule: as loops, as C++, as Python or as JSON. A generator's own is read without compiling it.

    Example: sdk schedule show blur.cpp --format cpp
    """
    from halide_autotune.sdk.api.schedule import own_schedule, shown_schedule

    if schedule is not None and schedule.endswith(_SUFFIXES):
        typer.echo(shown_schedule(Path(schedule), command.format), nl=False)
        return
    project = find_project(Path.cwd())
    named = given_generator(schedule, typed, project)
    options = chosen_options(typed, project, _TAKEN)
    read = own_schedule(named, options=options)
    typer.echo(shown_schedule(read.schedule, command.format), nl=False)
    for difference in read.differences:
        typer.echo(f"note: {difference}", err=True)
