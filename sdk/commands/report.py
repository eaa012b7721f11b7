"""`sdk report`: a run as an HTML page."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.display.quantities import count_text, unit_of
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress
from halide_autotune.targets.errors import UsageError

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.candidate import Measured
    from halide_autotune.autotune_loop.report.recorded_run import RecordedRun
    from halide_autotune.autotune_loop.report.run_page import PageOptions
    from halide_autotune.autotune_loop.store.published import Published
    from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule

_FASTEST_SHOWN = 5


def report(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="The folder of a run. [default: the latest in tuned/]",
            autocompletion=COMPLETIONS["runs"],
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The HTML file. [default: report.html in the run's folder]"
        ),
    ] = None,
    lines: Annotated[
        list[str] | None,
        typer.Option("--line", metavar="NAME=MS", help="A time to compare with, such as 'by hand=5.6'. Repeatable."),
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Follow a live run in the browser instead.")] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port of --serve; 0 takes a free one.")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Write a run's report: one HTML file that opens without a network.

    Example: sdk report tuned/blur-arm64-1 --line "by hand=5.6"
    """
    from halide_autotune.autotune_loop.report.run_page import PageOptions
    from halide_autotune.sdk.project.run_folders import latest_run_folder

    if serve and output is not None:
        raise UsageError("--serve writes no file, and follows a live run.", next_step="Leave --output out.")
    options = PageOptions(_lines_ms(lines or []), follows=serve)
    folder = run or latest_run_folder(Path.cwd())
    if serve:
        _serve(folder, options, port)
    else:
        _write(folder, output, options, as_json=as_json)


def _lines_ms(texts: list[str]) -> dict[str, float]:
    lines_ms = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            time_ms = float(value)
        except ValueError:
            time_ms = math.nan
        if not equals or not name.strip() or not (math.isfinite(time_ms) and time_ms > 0):
            raise UsageError(f"--line must be NAME=MILLISECONDS, such as 'by hand=5.6', not {text!r}.")
        lines_ms[name.strip()] = time_ms
    return lines_ms


def _serve(folder: Path, options: PageOptions, port: int) -> None:
    from halide_autotune.sdk.service.report_server import ReportServer

    server = ReportServer(folder, options, port)
    typer.echo(f"Serving {folder} at {server.address}, on this machine alone. Press Ctrl-C to stop.")
    server.serve_forever()


def _write(folder: Path, output: Path | None, options: PageOptions, *, as_json: bool) -> None:
    from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
    from halide_autotune.sdk.api.report import write_report

    with show_progress("drawing", quiet=as_json):
        found = read_recorded_run(folder)
        path = write_report(found, output, options)
    if as_json:
        print_json({"report": str(path), **_as_dict(found)})
        return
    _print_tables(found)
    typer.echo(f"report: {path}")


def _as_dict(run: RecordedRun) -> dict[str, object]:
    from halide_autotune.autotune_loop.report.found_by import ancestors, techniques
    from halide_autotune.autotune_loop.report.run_figures import correlation_by_round
    from halide_autotune.autotune_loop.specification.tuning_task import generator_names

    return {
        "run": str(run.folder),
        "generator": generator_names(run.record.spec.tasks),
        "target": run.record.spec.profile.name,
        "clock": run.clock,
        "timed": len(run.samples),
        "duration_s": run.duration_s,
        "failures": _by_kind(run),
        "not_done": run.not_done,
        "tasks": [
            {
                "task": task.task_index,
                "timed": len(task.samples),
                **_published(run, task.task_index).to_dict(),
                "size_schedules": [one.to_dict() for one in _at_sizes(run, task.task_index)],
                "fastest_in_rounds": _fastest(task.fastest),
                "ancestors": [asdict(one) for one in ancestors(task.samples, _published(run, task.task_index).symbol)],
                "techniques": [asdict(one) for one in techniques(task.samples)],
                "rank_correlation_by_round": {str(key): rho for key, rho in correlation_by_round(task.samples).items()},
            }
            for task in run.tasks
        ],
    }


def _published(run: RecordedRun, task_index: int) -> Published:
    from halide_autotune.autotune_loop.store.published import NOTHING

    return run.headers[task_index].published if task_index in run.headers else NOTHING


def _at_sizes(run: RecordedRun, task_index: int) -> tuple[SizeSchedule, ...]:
    return run.headers[task_index].size_schedules if task_index in run.headers else ()


def _fastest(measured: Measured) -> dict[str, object]:
    return {"sample": measured.candidate.sample, "ms": measured.median_ms, "timings": measured.processes}


def _by_kind(run: RecordedRun) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for (stage, reason, _), count in run.failures.items():
        counts[f"{stage}: {reason}"] += count
    return counts


def _print_tables(run: RecordedRun) -> None:
    from halide_autotune.autotune_loop.candidate import found_by
    from halide_autotune.autotune_loop.parameters.space import set_text
    from halide_autotune.autotune_loop.report.run_figures import correlation_by_round
    from halide_autotune.autotune_loop.specification.tuning_task import generator_names
    from halide_autotune.autotune_loop.store.published import NOTHING
    from halide_autotune.devices.device import Clock
    from halide_autotune.sdk.display.clock_lines import clock_lines
    from halide_autotune.sdk.display.published_rows import LABEL_WIDTH, ShownTimes, published_rows, size_schedule_rows

    console = make_console()
    clock = Clock(run.clock)
    spec = run.record.spec
    console.print(f"{generator_names(spec.tasks)} for {spec.profile.name}", style="bold")
    for told in clock_lines([run.clock]):
        console.print(told)
    for task in run.tasks:
        newest = list(correlation_by_round(task.samples).values())[-1:]
        correlation = f"; rank correlation of the last round {newest[0]:.2f}" if newest else ""
        which = f"argument set {task.task_index + 1}: " if len(run.tasks) > 1 else ""
        console.print(f"{which}{count_text(len(task.samples), task.noun)} timed{correlation}")
        published = _published(run, task.task_index)
        if published is NOTHING:
            console.print("  nothing that the run has published is there", style="bold yellow")
            continue
        at_sizes = _at_sizes(run, task.task_index)
        shown = ShownTimes.of(published, at_sizes, clock.mark)
        for row_label, text, style in (*published_rows(published, shown, ""), *size_schedule_rows(at_sizes, shown)):
            line = f"  {row_label:{LABEL_WIDTH}}{text}"
            console.print(line, style=style, soft_wrap=True, highlight=False, markup=False)
        if published.parameters:
            console.print(f"  {'parameters':{LABEL_WIDTH}}{set_text(published.parameters)}", highlight=False)
    fastest = sorted(run.samples, key=lambda sample: (sample.candidate.task_index, sample.median_ms))[:_FASTEST_SHOWN]
    if fastest:
        numbers, unit = ("time", "timings", "spread"), unit_of(sample.median_ms for sample in fastest)
        table = plain_table("fastest in the rounds", *numbers, "found by", "device", numbers=numbers)
        for sample in fastest:
            spread = f"{100 * sample.spread_ms / sample.median_ms:.1f} %"
            one = sample.candidate
            origin = found_by(one.point)
            time = unit.text(sample.median_ms, clock.mark)
            table.add_row(
                set_text(one.parameters) or one.sample, time, str(sample.processes), spread, origin, sample.device
            )
        console.print(table)
    failures = ", ".join(f"{count} {kind}" for kind, count in _by_kind(run).items()) or "none"
    console.print(f"failed: {failures}")
