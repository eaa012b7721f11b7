"""`sdk weights import` and `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sdk.commands.weights.compare import WeightsArgument
from sdk.options.shared_options import complete_target_names


def register(group: typer.Typer) -> None:
    """Add the commands to the group."""
    group.command("import")(import_weights)
    group.command("export")(export_weights)


def import_weights(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .weights file; a .toml beside it tells its lineage.")],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="PROFILE", help="Its profile.", autocompletion=complete_target_names),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="The device it was trained on.")] = "",
    note: Annotated[str, typer.Option("--note", help="One line for people.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of weights that have the name.")] = False,
) -> None:
    """Keep a weights file under the name of its profile and device; searches for them start from it.

    Example: sdk weights import tuned/blur-arm64-1/samples/updated.weights --target arm64 --device pi4
    """
    from dataclasses import replace as changed

    from sdk.select.named_weights import open_registry
    from sdk.settings import read_settings
    from targets.errors import UsageError
    from targets.profile.loader import load_profile
    from weights.lineage import Lineage, read_lineage
    from weights.registry import entry_name
    from weights.weights_file import read_weights, weights_sha256

    settings = read_settings()
    weights = read_weights(file)
    lineage = read_lineage(file, weights_sha256(weights)) or Lineage(network=weights.network.value)
    profile = load_profile(target, settings.profile_folder).name if target is not None else lineage.profile
    if not profile:
        raise UsageError(f"Nothing says which profile {file} is for.", next_step="Give --target.")
    lineage = changed(lineage, profile=profile, device=device or lineage.device, note=note or lineage.note)
    registry = open_registry(settings)
    name = entry_name(profile, lineage.device)
    if (registry.folder / f"{name}.weights").exists() and not replace:
        raise UsageError(f"There are weights named {name} already.", next_step="Give --replace to take their place.")
    entry = registry.add(name, weights, lineage)
    typer.echo(f"{name}: {entry.path}")


def export_weights(
    weights: WeightsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The .weights file; its lineage goes beside it.")],
) -> None:
    """Write weights with their lineage into files, to carry elsewhere.

    Example: sdk weights export arm64@pi4 -o pi4.weights
    """
    from sdk.select.named_weights import find_weights
    from sdk.settings import read_settings
    from weights.lineage import write_lineage
    from weights.weights_file import write_weights

    found = find_weights(weights, read_settings())
    write_weights(found.weights, output)
    beside = write_lineage(found.lineage, output)
    typer.echo(f"{output} and {beside}")
