"""`sdk network bench`: a model checked layer by layer, and timed beside others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.commands.network.build import (
    TAKEN,
    ModelArgument,
    RunOption,
    network_options,
    warn_of_defaults,
)
from halide_autotune.sdk.display.quantities import count_text, time_text
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress

if TYPE_CHECKING:
    from rich.table import Table

    from halide_autotune.sdk.api.network.bench import BenchedLayer, BenchedNetwork

_TAKEN = (*TAKEN, "device", "inventory", "parallelism")
_LONGEST_CHARACTERS = 48
_MOST_FOLLOWERS = 5


@with_options
def bench(
    model: ModelArgument,
    typed: Annotated[Mapping[str, Any], Takes(RunOptions, only=_TAKEN)],
    *,
    run: RunOption = None,
    turns: Annotated[
        int, typer.Option("--turns", metavar="COUNT", min=1, help="How often each contender is timed.")
    ] = 5,
    as_json: JsonOption = False,
) -> None:
    """Build a model, compare each layer with Keras on random input, and time it beside TensorFlow and LiteRT.

    A .tflite file is compared with TensorFlow Lite's reference kernels, and timed beside LiteRT. On an emulated device
    nothing is timed. The exit code is 1 where a layer computes something else. What follows from it is then not judged.

    Example: sdk network bench MobileNetV2 --run tuned/mobilenetv2-host
    """
    options = network_options(typed, run, _TAKEN)
    # Imported here: it takes long, and a wrong option need not wait for it.
    from halide_autotune.sdk.api.network.bench import bench_network

    with show_progress(f"reading {model}", quiet=as_json) as progress:
        found = bench_network(model, run=run, options=options, turns=turns, progress=progress)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    warn_of_defaults(found.not_tuned)
    if found.wrong:
        raise typer.Exit(1)


def _print(found: BenchedNetwork) -> None:
    console, names = make_console(), list(found.outputs)
    timed = [name for name in names if name in found.times_ms]
    numbers = (*(f"{name} schedule" for name in timed), "largest error")
    table = plain_table("layer", *numbers, numbers=numbers)
    for layer in found.layers:
        table.add_row(_brief(layer.name), *(time_text(layer.times_ms[name]) for name in timed), _error_text(layer))
    console.print(table)
    if found.times_ms:
        console.print(_whole_table(found))
    else:
        console.print(f"{found.device.name} is emulated: nothing was timed.")
    for name, why in found.not_timed.items():
        typer.echo(f"{name} was not timed: {why}", err=True)
    if not found.wrong:
        console.print(
            f"{found.network}: {count_text(len(found.layers), 'layer')}, all as computed by {found.reference}."
        )
    for name, check in found.wrong:
        allowed = (
            f"at most {check.tolerance:.0e} is rounding" if check.tolerance else "it is to be the same bit for bit"
        )
        error = f"{check.error:.2g} of the range of its numbers; {allowed}"
        typer.echo(f"{check.name} with {name} schedules is off by {error}.", err=True)
    for name in names:
        followers = [_brief(check.name) for schedules, check in found.not_judged if schedules == name]
        if followers:
            several = len(followers) - _MOST_FOLLOWERS
            told = ", ".join(followers[:_MOST_FOLLOWERS]) + (f" and {several} more" if several > 0 else "")
            typer.echo(
                f"With {name} schedules these follow from a wrong layer and could not be judged: {told}.", err=True
            )


def _whole_table(found: BenchedNetwork) -> Table:
    """The whole network by who computes it: the median of the turns, and how far they are apart."""
    numbers = ("time of a call", "fastest turn", "slowest turn", "against ours")
    table = plain_table("whole network", *numbers, numbers=numbers)
    best_ms = min(time_ms for name, time_ms in found.times_ms.items() if name in found.outputs)
    for name, time_ms in found.times_ms.items():
        who = f"{name} schedules" if name in found.outputs else name
        ends = [time_text(each) for each in found.ranges_ms[name]]
        table.add_row(who, time_text(time_ms), *ends, f"{time_ms / best_ms:.2f}×")
    return table


def _brief(name: str) -> str:
    """The first of the model's layers, and how many more are computed with it."""
    first, *others = name.split("+")
    # A .tflite file's have all that was fused, the last first.
    first = first.partition(";")[0]
    if len(first) > _LONGEST_CHARACTERS:
        first = f"…{first[1 - _LONGEST_CHARACTERS :]}"
    return f"{first} and {count_text(len(others), 'more layer')}" if others else first


def _error_text(layer: BenchedLayer) -> str:
    if not layer.checks:
        return "–"
    largest = max(layer.checks.values(), key=lambda check: check.error)
    return f"{largest.error:.1e}" if largest.follows_from is None else "follows from a wrong one"
