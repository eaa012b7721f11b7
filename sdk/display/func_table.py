"""What the Funcs of schedules take, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from halide_autotune.autotune_loop.measure.func_comparison import FuncRow, FuncTable, ProfiledSchedule, func_tables
from halide_autotune.devices.timing.func_times import FuncTimes
from halide_autotune.sdk.output import make_console, plain_table

if TYPE_CHECKING:
    from rich.table import Table


def print_func_table(profiled: Sequence[ProfiledSchedule]) -> None:
    """Print a table for each device, the slowest Funcs first; failures go to standard error."""
    tables = func_tables(profiled)
    for table in tables:
        if table.times:
            make_console().print(_printed(table))
        for label, message in table.failures.items():
            place = f" on {table.device}" if len(tables) > 1 else ""
            typer.echo(f"{label}{place}: {message}", err=True)


def func_times_as_json(profiled: Sequence[ProfiledSchedule]) -> list[dict[str, object]]:
    """The same for programs."""
    return [
        {
            "device": one.device,
            "schedule": one.label,
            "failure": None if isinstance(one.result, FuncTimes) else one.result.message,
            "times": asdict(one.result) if isinstance(one.result, FuncTimes) else None,
        }
        for one in profiled
    ]


def _printed(of: FuncTable) -> Table:
    table = plain_table("Func", *of.times, numbers=tuple(of.times))
    table.title, table.caption = f"ms of one call on {of.device}, by Halide's profiler", "–: inlined, or not there"
    calls_s = tuple(one.call_s for one in of.times.values())
    for row in [*of.rows, FuncRow("all", calls_s)]:
        table.add_row(row.name, *map(_cell, row.times_s, calls_s))
    return table


def _cell(time_s: float | None, call_s: float) -> str:
    return "–" if time_s is None else f"{time_s * 1e3:.3f} {100 * time_s / call_s:3.0f} %"
