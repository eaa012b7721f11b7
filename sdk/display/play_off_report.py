"""What `sdk bench --play-off` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from autotune_loop.play_off.header_play_off import HeaderPlayOff


def show_play_off(result: HeaderPlayOff, as_json: bool) -> None:
    """Print the verdict and every contender's times; exit code 1 when nothing was decided."""
    from sdk.output import print_json

    if as_json:
        print_json(_play_off_fields(result))
    else:
        _print_times(result)
        typer.echo(result.verdict.message)
        for label, message in result.failures.items():
            typer.echo(f"{label}: {message}", err=True)
    if not result.verdict.is_decided:
        raise typer.Exit(1)


def _play_off_fields(result: HeaderPlayOff) -> dict[str, object]:
    contenders = [
        {
            "schedule": label,
            "failure": result.failures.get(label),
            "times": {
                device: {
                    "median_ms": times.median_ms,
                    "spread_ms": times.spread_ms,
                    "range_ms": list(times.range_ms),
                    "turns_s": list(times.turns_s),
                }
                for device, times in by_device.items()
            },
        }
        for label, by_device in zip(result.labels, result.times, strict=True)
    ]
    return {"verdict": result.verdict.to_dict(), "clock": result.clock or None, "contenders": contenders}


def _print_times(result: HeaderPlayOff) -> None:
    from rich.table import Table

    from devices.device import Clock
    from sdk.output import make_console

    label = Clock(result.clock).label if result.clock else ""
    table = Table(title=f"time of one call{label}, each turn in a process of its own")
    table.add_column("schedule")
    table.add_column("device")
    for column in ("median ms", "fastest to slowest", "turns"):
        table.add_column(column, justify="right")
    for contender, by_device in zip(result.labels, result.times, strict=True):
        if not by_device:
            table.add_row(contender, "–", "failed", "–", "–")
        for device, times in by_device.items():
            low_ms, high_ms = times.range_ms
            cells = (f"{times.median_ms:.4g}", f"{low_ms:.4g} to {high_ms:.4g}", str(len(times.turns_s)))
            table.add_row(contender, device, *cells)
    make_console().print(table)
