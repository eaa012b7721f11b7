"""What the Funcs of schedules take, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from autotune_loop.measure.func_comparison import ProfiledSchedule
from devices.timing.func_times import FuncTimes
from sdk.output import make_console, plain_table

if TYPE_CHECKING:
    from rich.table import Table

# Funcs that take less than this share of every schedule are shown together.
_SMALLEST_SHARE = 0.005


def print_func_table(profiled: Sequence[ProfiledSchedule]) -> None:
    """Print a table for each device, the slowest Funcs first; failures go to standard error."""
    devices = dict.fromkeys(one.device for one in profiled)
    for device in devices:
        times = {one.label: one.result for one in profiled if one.device == device}
        usable = {label: result for label, result in times.items() if isinstance(result, FuncTimes)}
        if usable:
            make_console().print(_table(device, usable))
        for label, result in times.items():
            if not isinstance(result, FuncTimes):
                place = f" on {device}" if len(devices) > 1 else ""
                typer.echo(f"{label}{place}: {result.message}", err=True)


def _table(device: str, times: dict[str, FuncTimes]) -> Table:
    table = plain_table("Func", *times, numbers=tuple(times))
    table.title, table.caption = f"ms of one call on {device}, by Halide's profiler", "–: inlined, or not there"
    shares: dict[str, float] = {}
    for one in times.values():
        for func in one.funcs:
            shares[func.name] = max(shares.get(func.name, 0.0), _share(func.time_s, one))
    shown = sorted((name for name in shares if shares[name] >= _SMALLEST_SHARE), key=lambda name: -shares[name])
    for name in shown:
        funcs = [next((func for func in one.funcs if func.name == name), None) for one in times.values()]
        cells = [
            "–" if func is None else _cell(func.time_s, one) for func, one in zip(funcs, times.values(), strict=True)
        ]
        table.add_row(name, *cells)
    if len(shown) < len(shares):
        rests = [[func for func in one.funcs if func.name not in shown] for one in times.values()]
        cells = [_cell(sum(func.time_s for func in rest), one) for rest, one in zip(rests, times.values(), strict=True)]
        table.add_row(f"{len(shares) - len(shown)} others", *cells)
    table.add_row("all", *(_cell(one.call_s, one) for one in times.values()))
    return table


def _share(time_s: float, of: FuncTimes) -> float:
    return time_s / of.call_s if of.call_s > 0 else 0.0


def _cell(time_s: float, of: FuncTimes) -> str:
    return f"{time_s * 1e3:.3f} {_share(time_s, of):4.0%}"


def _cell_of(name: str, of: FuncTimes) -> str:
    return next((_cell(func.time_s, of) for func in of.funcs if func.name == name), "–")
