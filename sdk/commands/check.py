"""`sdk check`: a gate for committed schedules, for CI."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.options.check_options import CheckOptions
from halide_autotune.sdk.options.shared_options import JsonOption, ParameterOption
from halide_autotune.sdk.options.with_options import with_options
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress
from halide_autotune.targets.errors import SdkError, os_error_as

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.shipping.gate.checked_schedule import GateResult

_REPORTS = "Reports"


@with_options
def check(
    *,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that `sdk ship` wrote.")],
    options: CheckOptions,
    parameters: ParameterOption = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Also write JUnit's XML.", rich_help_panel=_REPORTS),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Also write a table.", rich_help_panel=_REPORTS),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that committed schedules still fit their generators, give the right output, and are as fast as they say.

    The exit code is 0 if all do; else that of the worst: 3 wrong, 4 stale, 5 slower, 6 undecided, 7 no device.

    Example: sdk check schedules --generator blur.cpp --device pi5 --fail-if-slower 5%
    """
    from halide_autotune.autotune_loop.shipping.gate.reports import junit_xml
    from halide_autotune.autotune_loop.shipping.gate.reports import markdown as as_markdown
    from halide_autotune.sdk.api.check import check_schedules

    places = _kept_places([path for path in (junit, markdown) if path is not None])
    with places, show_progress("checking", quiet=as_json) as progress:
        result = check_schedules(folder, options, parameters=parameters or (), progress=progress)
    if junit is not None:
        _write(junit, junit_xml(result, str(folder)))
    if markdown is not None:
        _write(markdown, as_markdown(result, str(folder)))
    if as_json:
        print_json(result.to_dict())
    else:
        _print(folder, result)
    if result.verdict.exit_code:
        raise typer.Exit(result.verdict.exit_code)


@contextlib.contextmanager
def _kept_places(paths: Sequence[Path]) -> Iterator[None]:
    """Check before anything is timed that reports can be written, and without losing what is there.

    Where no result follows, no empty file stays, which a CI server would read as a report.

    Raises:
        SdkError: one cannot be written.
    """
    made: list[Path] = []
    try:
        for path in paths:
            is_new = not os.path.lexists(path)
            with os_error_as(SdkError, f"{path} cannot be written"), path.open("ab"):
                pass
            if is_new:
                made.append(path)
        yield
    except BaseException:  # also where it is interrupted
        for path in made:
            path.unlink(missing_ok=True)
        raise


def _write(path: Path, text: str) -> None:
    with os_error_as(SdkError, f"{path} cannot be written"):
        path.write_text(text, encoding="utf-8")


def _print(folder: Path, result: GateResult) -> None:
    from halide_autotune.autotune_loop.shipping.gate.reports import figures
    from halide_autotune.sdk.display.clock_lines import clock_lines

    numbers = ("times as fast as the default", "when shipped", "time")
    table = plain_table("schedule", "target", "device", "result", *numbers, numbers=numbers)
    for one in result.schedules:
        table.add_row(one.header, one.target, one.device or "–", one.verdict.value, *figures(one))
    for line in clock_lines(one.clock for one in result.schedules if one.clock):
        make_console().print(line)
    if result.schedules:
        make_console().print(table)
    for one in result.schedules:
        if one.message:
            typer.echo(f"{one.header}: {one.message}", err=True)
    for problem in result.problems:
        typer.echo(f"{folder}: {problem}", err=True)
    for note in result.notes:
        typer.echo(f"note: {note}")
