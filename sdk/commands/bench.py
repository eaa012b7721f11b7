"""`sdk bench`: check and time schedules of one generator side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sdk.commands.autotune_options import Devices, Inventory, OptionalTarget
from sdk.options import GeneratorArgument, JsonOption, ParameterOption

if TYPE_CHECKING:
    from autotune_loop.comparison import ComparedSchedule


def register(application: typer.Typer) -> None:
    """Add the command to the application."""
    application.command("bench")(bench)


def bench(
    generator: GeneratorArgument = None,
    target: OptionalTarget = None,
    schedules: Annotated[
        list[str] | None,
        typer.Option(
            "--schedule",
            metavar="HEADER",
            help="A .schedule.h; or own (the generator's), adams2019, mullapudi2016, li2018. Repeat to compare.",
        ),
    ] = None,
    parameters: ParameterOption = None,
    device: Devices = None,
    inventory: Inventory = None,
    parallelism: Annotated[int | None, typer.Option("--parallelism", help="Threads of the device.")] = None,
    turns: Annotated[int, typer.Option("--turns", min=1, help="How often each schedule is timed.")] = 5,
    as_json: JsonOption = False,
) -> None:
    """Check and time schedules of a generator, side by side.

    Example: sdk bench blur.cpp --target host --schedule best.blur.schedule.h --schedule adams2019
    """
    from sdk.api.bench import bench as compare
    from sdk.output import print_json, show_progress
    from sdk.project_file import find_project

    named = find_project(Path.cwd()).resolve(generator)
    with show_progress("starting", quiet=as_json) as progress:
        results = compare(
            named,
            schedules or ["own"],
            target=target,
            device=device,
            inventory=inventory,
            parameters=parameters or (),
            parallelism=parallelism,
            turns=turns,
            progress=progress,
        )
    if as_json:
        print_json([_as_dict(result) for result in results])
    else:
        _print_table(results)
    if any(result.failure is not None for result in results):
        raise typer.Exit(1)


def _as_dict(result: ComparedSchedule) -> dict[str, object]:
    return {
        "device": result.device,
        "schedule": result.label,
        "median_ms": result.median_ms,
        "minimum_ms": result.minimum_ms,
        "spread_ms": result.spread_ms,
        "clock": result.turns[0].clock.value if result.turns else None,
        "output_compared_with": result.reference,
        "toolchain": result.toolchain,
        "failure": None if result.failure is None else result.failure.sentence,
        "turns_s": [list(turn.repetitions_s) for turn in result.turns],
    }


def _print_table(results: list[ComparedSchedule]) -> None:
    """One table for each device: times of two devices are not set against each other."""
    devices = dict.fromkeys(result.device for result in results)
    for device in devices:
        _print_device(device, [result for result in results if result.device == device])
    for result in results:
        if result.failure is not None:
            place = f" on {result.device}" if len(devices) > 1 else ""
            typer.echo(f"{result.label}{place}: {result.failure.sentence}", err=True)


def _print_device(device: str, results: list[ComparedSchedule]) -> None:
    from rich.table import Table

    from sdk.output import make_console

    label = next((r.turns[0].clock.label for r in results if r.turns), "")
    table = Table(title=f"time of one call on {device}{label}")
    table.add_column("schedule")
    for column in ("median ms", "spread", "minimum ms", "repetitions", "against the first"):
        table.add_column(column, justify="right")
    table.add_column("output")
    for result in results:
        table.add_row(*_row(result, results[0].median_ms))
    make_console().print(table)


def _row(result: ComparedSchedule, first_ms: float | None) -> list[str]:
    if result.failure is not None or result.median_ms is None:
        reason = "failed" if result.failure is None else result.failure.reason.value
        return [result.label, "–", "–", "–", "–", "–", reason]
    assert result.spread_ms is not None and result.minimum_ms is not None
    checked = f"equals {result.reference}'s" if result.reference else "not checked"
    ratio = f"{first_ms / result.median_ms:.2f}×" if first_ms else "–"
    return [
        result.label,
        f"{result.median_ms:.4g}",
        f"±{100 * result.spread_ms / result.median_ms:.1f} %",
        f"{result.minimum_ms:.4g}",
        str(result.repetitions),
        ratio,
        checked,
    ]
