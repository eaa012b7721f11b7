"""Arguments and options that the commands about devices share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.output import show_progress
from halide_autotune.sdk.settings import Settings, read_settings

if TYPE_CHECKING:
    from halide_autotune.devices.inventory.inventory import Inventory, InventoryDevice


def chosen_options(context: typer.Context, inventory: Path | None, as_json: bool) -> tuple[Path | None, bool]:
    """Return --inventory and --json, which may stand before or after the subcommand's name."""
    before: tuple[Path | None, bool] = context.obj or (None, False)
    return inventory or before[0], as_json or before[1]


def open_chosen_inventory(
    context: typer.Context, inventory: Path | None, as_json: bool
) -> tuple[Inventory, Settings, bool]:
    """Return the inventory and the settings of a subcommand, and --json.

    Raises:
        UsageError, DeviceError, ProfileError: as `open_inventory`.
    """
    from halide_autotune.sdk.inventory.lookup import open_inventory

    given, as_json = chosen_options(context, inventory, as_json)
    settings = read_settings()
    return open_inventory(given, settings), settings, as_json


def device_progress(
    doing: str, device: InventoryDevice, quiet: bool
) -> contextlib.AbstractContextManager[Callable[[str], None]]:
    """Show progress with a device; show nothing if its password will be asked for."""
    from halide_autotune.devices.remote_place import PasswordSource, SshAddress

    address = device.place.address
    asks = isinstance(address, SshAddress) and address.password_source is PasswordSource.PROMPT
    return show_progress(f"{doing} {device.name} ({address.describe()}) …", quiet or asks)


InventoryOption = Annotated[
    Path | None,
    typer.Option(
        "--inventory",
        metavar="FILE",
        help="The devices.toml. Default: that of sdk.toml, else the nearest devices.toml, else your own.",
    ),
]
NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A device of the inventory.", autocompletion=COMPLETIONS["inventory"]),
]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME...", help="Devices of the inventory, or label:LABEL.", autocompletion=COMPLETIONS["inventory"]
    ),
]
