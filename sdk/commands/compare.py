"""`sdk compare`: runs side by side, or the loops of headers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.display.quantities import duration_text, unit_of
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import make_console, plain_table, print_json
from halide_autotune.targets.errors import UsageError

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.report.comparison import Comparison

_HEADER = ".schedule.h"
# Of a setting, in a table; the page and the JSON have all of it.
_LONGEST_VALUE = 32


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Folders of runs; or .schedule.h files, for their loops.",
            autocompletion=COMPLETIONS["runs"],
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also write an HTML page.")
    ] = None,
    loops: Annotated[bool, typer.Option("--loops", help="Also show how the loops of the winners differ.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Put runs of one pipeline side by side: what they found, how soon, by what, and which settings differ.

    Example: sdk compare tuned/blur-arm64-1 tuned/blur-arm64-2 -o compare.html
    """
    from halide_autotune.sdk.api.compare import compare as compare_runs
    from halide_autotune.sdk.project.next_commands import play_off_line

    headers = [path for path in runs if path.name.endswith(_HEADER)]
    if headers:
        if len(headers) < len(runs) or len(headers) < 2:
            raise UsageError(
                "A header is only compared with other headers.", next_step="Name at least two, and no run."
            )
        _compare_headers(headers, output, as_json)
        return
    found = compare_runs(runs, output)
    if as_json:
        print_json([{**each.to_dict(), "decide_by": play_off_line(each) or None} for each in found])
        return
    for each in found:
        _print(each, loops=loops)
    if output is not None:
        typer.echo(f"page: {output}")


def _compare_headers(headers: list[Path], output: Path | None, as_json: bool) -> None:
    from halide_autotune.autotune_loop.report.loops_text import loops_difference, shown_loops
    from halide_autotune.targets.schedule.header import read_schedule

    if output is not None:
        raise UsageError("Only runs can be compared on a page.", next_step="Leave -o out.")
    texts = {str(path): shown_loops(read_schedule(path)) for path in headers}
    if as_json:
        print_json(texts)
    else:
        typer.echo(loops_difference(texts))


def _print(comparison: Comparison, *, loops: bool) -> None:
    from halide_autotune.autotune_loop.report.loops_text import loops_difference
    from halide_autotune.devices.device import Clock
    from halide_autotune.sdk.display.clock_lines import clock_lines
    from halide_autotune.sdk.project.next_commands import play_off_line

    console = make_console()
    console.print(comparison.name, style="bold")
    if comparison.why_not_compared:
        console.print(f"{comparison.why_not_compared} Compare no time of one run with another's.", style="bold yellow")
    for line in clock_lines(one.run.clock for one in comparison.runs):
        console.print(line)
    marks = {one.label: Clock.mark_of(one.run.clock) for one in comparison.runs}
    published = [time for one in comparison.runs for time in (one.published.tuned, one.published.default)]
    unit = unit_of(None if time is None else time.median_ms for time in published)
    numbers = ("took", "timed", "tuned", "default", "times as fast")
    table = plain_table("run", "target", "device", *numbers, "found by", numbers=numbers)
    for one in comparison.runs:
        gain, mark = one.published.speed_up, marks[one.label]
        table.add_row(
            one.label,
            one.run.record.spec.profile.name,
            ", ".join(one.run.record.made_with.devices),
            duration_text(one.run.duration_s),
            str(len(one.task.samples)),
            "–" if one.published.tuned is None else unit.text(one.published.tuned.median_ms, mark),
            "–" if one.published.default is None else unit.text(one.published.default.median_ms, mark),
            "–" if gain is None else f"{gain.times:.2f} (than the {gain.than})",
            one.found_by or "–",
        )
    console.print(table)
    _print_curves(comparison, marks)
    _print_techniques(comparison, marks)
    if comparison.settings:
        table = plain_table("setting that differs", *(one.label for one in comparison.runs))
        for key, values in comparison.settings.items():
            table.add_row(key, *(_short(value) for value in values))
        console.print(table)
    if loops:
        typer.echo(loops_difference({one.label: one.loops for one in comparison.runs}))
    if not comparison.why_not_compared:
        typer.echo("The runs were not timed in turns.")
        if decides_by := play_off_line(comparison):
            typer.echo(f"To decide between their winners: {decides_by}")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _print_curves(comparison: Comparison, marks: dict[str, str]) -> None:
    moments = [duration_text(moment_s) for moment_s in comparison.moments_s]
    if not moments:
        return
    table = plain_table("best so far, after", *moments, numbers=moments)
    unit = unit_of(one.best_ms_after(moment_s) for one in comparison.runs for moment_s in comparison.moments_s)
    for one in comparison.runs:
        reached = [one.best_ms_after(moment_s) for moment_s in comparison.moments_s]
        table.add_row(one.label, *("–" if ms is None else unit.text(ms, marks[one.label]) for ms in reached))
    make_console().print(table)


def _print_techniques(comparison: Comparison, marks: dict[str, str]) -> None:
    """What found the schedules, and on which device, where that is not the same for all."""
    rows = [(one.label, row) for one in comparison.runs for row in one.techniques]
    numbers, unit = ("timed", "fastest", "new bests"), unit_of(row.best_ms for _, row in rows)
    table = plain_table("run", "found by", *numbers, numbers=numbers)
    for label, row in rows:
        table.add_row(label, row.technique, str(row.timed), unit.text(row.best_ms, marks[label]), str(row.new_bests))
    make_console().print(table)
    if any(len(one.by_device) > 1 for one in comparison.runs):
        table = plain_table("run", "device", *numbers[:2], numbers=numbers)
        for one in comparison.runs:
            for device, (timed, best_ms) in one.by_device.items():
                table.add_row(one.label, device, str(timed), unit.text(best_ms, marks[one.label]))
        make_console().print(table)
