"""Arguments and options that the commands about devices share, with their shell completion."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from devices.inventory.inventory import Inventory, InventoryDevice
    from sdk.settings import Settings


def complete_device_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the devices that start with `incomplete`, for the shell; never an error."""
    from sdk.inventory.lookup import open_inventory
    from sdk.settings import read_settings
    from targets.errors import SdkError

    try:
        devices = open_inventory(context.params.get("inventory"), read_settings()).devices
    except (SdkError, OSError):
        return []
    return [device.name for device in devices if device.name.startswith(incomplete)]


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
    from sdk.inventory.lookup import open_inventory
    from sdk.settings import read_settings

    given, as_json = chosen_options(context, inventory, as_json)
    settings = read_settings()
    return open_inventory(given, settings), settings, as_json


def device_progress(
    doing: str, device: InventoryDevice, quiet: bool
) -> contextlib.AbstractContextManager[Callable[[str], None]]:
    """Show progress with a device; show nothing if its password will be asked for."""
    from devices.remote_place import PasswordSource, SshAddress
    from sdk.output import show_progress

    address = device.place.address
    asks = isinstance(address, SshAddress) and address.password_source is PasswordSource.PROMPT
    return show_progress(f"{doing} {device.name} ({address.describe()}) …", quiet or asks)


InventoryOption = Annotated[
    Path | None,
    typer.Option(
        "--inventory",
        metavar="FILE",
        help="The file of devices; without it sdk.toml's, the nearest devices.toml, or your own.",
    ),
]
NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A device of the inventory.", autocompletion=complete_device_names),
]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME...", help="Devices of the inventory, or label:LABEL.", autocompletion=complete_device_names
    ),
]
