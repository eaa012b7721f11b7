"""`sdk network`: neural networks, from a model to what is tuned of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.display.quantities import count_text
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress

if TYPE_CHECKING:
    from halide_autotune.sdk.api.network import NetworkTasks

group = typer.Typer(
    name="network",
    help="Neural networks: what there is to tune in a model.\n\nExample: sdk network tasks MobileNetV2",
)
_MODEL_HELP = "A .keras file, an application of Keras such as MobileNetV2, or resnet18-convolutions."


@group.command()
def tasks(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL_HELP)],
    as_json: JsonOption = False,
) -> None:
    """List the operators of a model that are to be tuned: fused, equal ones once, with how often they are needed.

    The exit code is 1 where a layer has no operator: the model cannot be built.

    Example: sdk network tasks MobileNetV2
    """
    from halide_autotune.sdk.api.network import network_tasks

    with show_progress(f"reading {model}", quiet=as_json):
        found = network_tasks(model)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    if found.unsupported:
        raise typer.Exit(1)


def _print(found: NetworkTasks) -> None:
    total = sum(task.count * task.operations for task in found.tasks)
    numbers = ("times", "million operations", "share")
    table = plain_table("operator", *numbers, "first layer", numbers=numbers)
    for task in found.tasks:
        share = task.count * task.operations / max(1, total)
        work = f"{task.operations / 1e6:,.1f}"
        table.add_row(task.title, str(task.count), work, f"{100 * share:.0f} %", task.places[0][0])
    console = make_console()
    console.print(table)
    operators = sum(task.count for task in found.tasks)
    counted = f"{count_text(len(found.tasks), 'task')} for {count_text(operators, 'operator')}"
    console.print(f"{found.network.name}: {counted}, {total / 1e6:,.0f} million operations.")
    for each in found.unsupported:
        typer.echo(f"layer {each.place}: {each.reason}.", err=True)
    if found.unsupported:
        typer.echo("These layers cannot be tuned, and the model cannot be built with them.", err=True)
