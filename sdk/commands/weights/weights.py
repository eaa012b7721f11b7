"""`sdk weights`: the weights that searches can start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sdk.commands.weights import compare as weights_compare
from sdk.commands.weights import transfer as weights_transfer
from sdk.options.shared_options import JsonOption

if TYPE_CHECKING:
    from weights.registry import RegisteredWeights


def register(application: typer.Typer) -> None:
    """Add the command to the application."""
    group = typer.Typer()
    group.callback(invoke_without_command=True)(weights)
    group.command("list")(list_)
    for module in (weights_compare, weights_transfer):
        module.register(group)
    application.add_typer(group, name="weights")


def weights(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the weights that are known by name; show, compare, evaluate, import and export them.

    Example: sdk weights
    """
    if context.invoked_subcommand is not None:
        context.obj = as_json
        return
    _list(as_json)


def list_(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the weights that are known by name, as `sdk weights` alone does.

    Example: sdk weights list
    """
    _list(as_json or bool(context.obj))


def _list(as_json: bool) -> None:
    from sdk.output import print_json
    from sdk.select.named_weights import open_registry
    from sdk.settings import read_settings

    registry = open_registry(read_settings())
    sound, damaged = registry.entries()
    if as_json:
        print_json(
            {
                "folder": str(registry.folder),
                "weights": [entry_dict(entry) for entry in sound],
                "damaged": [{"name": d.name, "path": str(d.path), "message": d.message} for d in damaged],
            }
        )
        return
    _print_table(sound)
    for entry in damaged:
        typer.echo(f"{entry.name}: {entry.message}")
    typer.echo(f"Yours are kept in {registry.folder}.")


def entry_dict(entry: RegisteredWeights) -> dict[str, object]:
    """An entry for machines."""
    from dataclasses import asdict

    return {
        "name": entry.name,
        "path": str(entry.path),
        "sha256": entry.sha256,
        "shipped": entry.is_shipped,
        **asdict(entry.lineage),
    }


def _print_table(entries: list[RegisteredWeights]) -> None:
    from rich.table import Table
    from rich.text import Text

    from sdk.display.quantities import share_text
    from sdk.output import make_console

    console = make_console()
    if not entries:
        console.print(Text("No weights yet: searches start from those inside Halide's plug-in."))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("name", "network", "samples", "pipelines", "pairs in order", "created", "from"):
        table.add_column(name, justify="right" if name in ("samples", "pipelines", "pairs in order") else "left")
    for entry in entries:
        told = entry.lineage
        accuracy = "" if told.pairwise_accuracy is None else share_text(told.pairwise_accuracy)
        source = "the SDK" if entry.is_shipped else "yours"
        words = "DSP cycles" if told.clock == "cycles" else f"{told.clock} time"
        clock = f" ({words})" if told.clock not in ("", "wall") else ""
        table.add_row(
            Text(entry.name, style="cyan"),
            told.network,
            str(told.samples or ""),
            str(told.pipelines or ""),
            accuracy,
            told.created,
            source + clock,
        )
    console.print(table)
