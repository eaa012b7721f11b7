"""`sdk bench`: check and time schedules of one generator side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.display.quantities import digits
from halide_autotune.sdk.options.autotune_options import (
    CALLED_WITH,
    ONE_GENERATOR,
    GeneratorOptions,
    chosen_options,
    given_generator,
)
from halide_autotune.sdk.options.bench_options import BenchOptions
from halide_autotune.sdk.options.shared_options import GeneratorArgument
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress
from halide_autotune.sdk.project.file import find_project
from halide_autotune.targets.errors import UsageError

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.measure.comparison import ComparedSchedule
    from halide_autotune.autotune_loop.measure.func_comparison import ProfiledSchedule
    from halide_autotune.autotune_loop.play_off.header_play_off import HeaderPlayOff
    from halide_autotune.devices.timing.measurement import ReshapedOutput

_TAKEN = (
    *CALLED_WITH,
    *("target", "target_features", "device", "inventory", "clock", "hexagon_sdk_root", "parallelism"),
    *("objective", "device_weights", "worst_tolerance", "seed"),
)


@with_options
def bench(
    *,
    generator: GeneratorArgument = None,
    typed: Annotated[Mapping[str, Any], Takes(GeneratorOptions, RunOptions, only=(*ONE_GENERATOR, *_TAKEN))],
    command: BenchOptions,
) -> None:
    """Check and time schedules of a generator side by side; with --play-off, decide which one to ship.

    With --by-func, see what each Func of them takes.

    Example: sdk bench blur.cpp --target host --schedule adams2019 --schedule best.blur.schedule.h --play-off
    """
    from halide_autotune.sdk.api import bench as api

    if command.by_func and command.play_off:
        raise UsageError("--by-func and --play-off do not go together.", next_step="Give one of them.")
    project = find_project(Path.cwd())
    named = given_generator(generator, typed, project)
    options = chosen_options(typed, project, _TAKEN).with_values({"budget_s": command.budget_s})
    with show_progress("starting", quiet=command.as_json) as progress:
        if command.by_func:
            profiled = api.func_times(named, command.schedules, options=options, progress=progress)
        elif command.play_off:
            decided = api.play_off(named, command.schedules, options=options, progress=progress)
        else:
            results = api.bench(named, command.schedules, options=options, turns=command.turns, progress=progress)
    if command.by_func:
        _show_funcs(profiled, command.as_json)
    elif command.play_off:
        _show_play_off(decided, command.as_json)
    else:
        _show(results, command.as_json)


def _show(results: list[ComparedSchedule], as_json: bool) -> None:
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
        "failure": None if result.failure is None else result.failure.message,
        "reshaped": [asdict(output) for output in result.reshaped],
        "turns_s": [list(turn.repetitions_s) for turn in result.turns],
    }


def _print_table(results: list[ComparedSchedule]) -> None:
    """Print a table for each device: times of different devices are not compared."""
    devices = dict.fromkeys(result.device for result in results)
    _print_clocks(turn.clock.value for result in results for turn in result.turns[:1])
    for device in devices:
        _print_device(device, [result for result in results if result.device == device])
    _print_shapes({result.label: result.reshaped for result in results if result.turns})
    for result in results:
        if result.failure is not None:
            place = f" on {result.device}" if len(devices) > 1 else ""
            typer.echo(f"{result.label}{place}: {result.failure.message}", err=True)


def _print_clocks(clocks: Iterable[str]) -> None:
    from halide_autotune.sdk.display.clock_lines import clock_lines

    for line in clock_lines(clocks):
        make_console().print(line)


def _print_shapes(reshaped: Mapping[str, Sequence[ReshapedOutput]]) -> None:
    """Say which schedules do other work than was asked for: their times are not those of the same work."""
    for label, outputs in reshaped.items():
        for output in outputs:
            typer.echo(
                f"{label} computes {output.computed} of {output.name}, and the reference {output.reference}: its time "
                f"is for that, and the outputs were compared at {output.common}."
            )


def _print_device(device: str, results: list[ComparedSchedule]) -> None:
    clock = next((r.turns[0].clock for r in results if r.turns), None)
    mark = "" if clock is None else clock.mark
    numbers = (f"median ms{mark}", "spread", f"minimum ms{mark}", "repetitions", "against the first")
    table = plain_table("schedule", *numbers, "output", numbers=numbers)
    table.title = f"time of one call on {device}"
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
        digits(result.median_ms),
        f"±{100 * result.spread_ms / result.median_ms:.1f} %",
        digits(result.minimum_ms),
        str(result.repetitions),
        ratio,
        checked,
    ]


def _show_funcs(profiled: Sequence[ProfiledSchedule], as_json: bool) -> None:
    """Print what each Func takes; the exit code is 1 if a schedule failed."""
    from halide_autotune.sdk.display.func_table import func_times_as_json, print_func_table

    if as_json:
        print_json(func_times_as_json(profiled))
    else:
        print_func_table(profiled)
    if not all(one.has_times for one in profiled):
        raise typer.Exit(1)


def _show_play_off(result: HeaderPlayOff, as_json: bool) -> None:
    """Print the verdict and the times of every schedule; the exit code is 1 if nothing was decided."""
    if as_json:
        print_json(_play_off_fields(result))
    else:
        _print_times(result)
        _print_shapes(result.reshaped)
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
            "reshaped": [asdict(output) for output in result.reshaped.get(label, ())],
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
    from halide_autotune.devices.device import Clock

    clocks = [result.clock] if result.clock else []
    _print_clocks(clocks)
    mark = "".join(map(Clock.mark_of, clocks))
    numbers = (f"median ms{mark}", f"fastest to slowest ms{mark}", "turns")
    table = plain_table("schedule", "device", *numbers, numbers=numbers)
    table.title = "time of one call, each turn in its own process"
    for contender, by_device in zip(result.labels, result.times, strict=True):
        if not by_device:
            table.add_row(contender, "–", "failed", "–", "–")
        for device, times in by_device.items():
            low_ms, high_ms = times.range_ms
            cells = (digits(times.median_ms), f"{digits(low_ms)} to {digits(high_ms)}", str(len(times.turns_s)))
            table.add_row(contender, device, *cells)
    make_console().print(table)
