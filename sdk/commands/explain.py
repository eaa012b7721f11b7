"""`sdk explain`: why a schedule is fast, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.options.autotune_options import (
    CALLED_WITH,
    ONE_GENERATOR,
    GeneratorOptions,
    chosen_options,
    given_generator,
)
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.explain_options import ExplainOptions
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.output import print_json, show_progress
from halide_autotune.sdk.project.file import find_project
from halide_autotune.targets.errors import UsageError

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.explain.explained import Explanation

_DEVICES = ("target", "target_features", "device", "inventory", "clock", "hexagon_sdk_root", "parallelism")


@with_options
def explain(
    *,
    explained: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="The folder of a run; or a .schedule.h.", autocompletion=COMPLETIONS["runs"]
        ),
    ],
    generator: Annotated[
        str | None,
        typer.Argument(metavar="[GENERATOR]", help="Of a .schedule.h: path.py[:name] or path.cpp[:name]."),
    ] = None,
    typed: Annotated[
        Mapping[str, Any],
        Takes(GeneratorOptions, RunOptions, only=(*ONE_GENERATOR, *CALLED_WITH, *_DEVICES)),
    ],
    command: ExplainOptions,
) -> None:
    """Say why a schedule is fast: what each Func takes, loads and computes again, what has changed, and what limits it.

    A run's winner is compared with the default schedule and with the generator's own. Its report shows the same.

    Example: sdk explain tuned/blur-host-1

    Of a header: sdk explain best.blur.schedule.h blur.cpp --target host
    """
    from halide_autotune.sdk.api import explain as api

    is_run = explained.is_dir()
    project = find_project(Path.cwd())
    with show_progress("starting", quiet=command.as_json) as progress:
        if is_run:
            _check_of_run(generator, typed, command)
            devices = chosen_options(typed, project, _DEVICES).devices if typed else None
            by_set = api.explain_run(explained, devices, progress=progress)
            found = [one for several in by_set.values() for one in several]
        else:
            if generator is None:
                _check_is_schedule(explained)
            options = chosen_options(typed, project, (*CALLED_WITH, *_DEVICES))
            named = given_generator(generator, typed, project)
            found = api.explain(named, str(explained), command.schedules, options=options, progress=progress)
    _show(found, command.as_json)
    if is_run and not command.as_json:
        typer.echo(f"picture: sdk report {explained}")


def _check_of_run(generator: str | None, typed: Mapping[str, Any], command: ExplainOptions) -> None:
    if generator is not None or command.schedules or typed.keys() - set(_DEVICES):
        raise UsageError(
            "A run has its generator, its parameters and sizes, and what it is compared with.",
            next_step="Give no more than devices and a target, or explain the run's header instead of its folder.",
        )


def _check_is_schedule(explained: Path) -> None:
    """Before a generator is asked for: a folder that is misspelt needs none."""
    from halide_autotune.targets.profile.profile import AUTOSCHEDULER_PARAMETERS, OWN_SCHEDULE

    if not explained.exists() and str(explained) not in (OWN_SCHEDULE, *map(str.lower, AUTOSCHEDULER_PARAMETERS)):
        raise UsageError(
            f"There is no run and no schedule {explained}.",
            next_step="Give the folder of a run, or a .schedule.h with its generator.",
        )


def _show(found: list[Explanation], as_json: bool) -> None:
    """Print the explanations; the exit code is 1 if something is not known of a schedule."""
    from halide_autotune.sdk.display.explanation_text import print_explanation

    if as_json:
        print_json([one.to_dict() for one in found])
    else:
        for one in found:
            print_explanation(one)
    if any(one.explained.missing for one in found):
        raise typer.Exit(1)
