"""`sdk devices lease` and `sdk devices release`: a device kept for oneself by hand."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from sdk.options.devices_options import InventoryOption, NameArgument, chosen_options, device_progress
from sdk.options.shared_options import JsonOption


def register(group: typer.Typer) -> None:
    """Add the commands to the group."""
    group.command("lease")(lease)
    group.command("release")(release)


def lease(
    context: typer.Context,
    name: NameArgument,
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="For how long: 90s, 10m, 2h.")] = "2h",
    force: Annotated[bool, typer.Option("--force", help="Take it from whoever holds it.")] = False,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep a device for yourself: your own runs on it use the lease, others' keep off. Again, it is renewed.

    Example: sdk devices lease pi5 --for 2h
    """
    from sdk.display.quantities import iso_text, moment_text
    from sdk.inventory.connections import connection_settings
    from sdk.inventory.device_access import reach_device
    from sdk.inventory.hand_lease import parse_lease_s, take_leases
    from sdk.inventory.lookup import open_inventory
    from sdk.output import print_json
    from sdk.settings import read_settings

    ttl_s = parse_lease_s(duration)
    given, as_json = chosen_options(context, inventory, as_json)
    settings = read_settings()
    device, places = open_inventory(given, settings).find_slots(name)
    folder = connection_settings(settings).token_folder
    with device_progress("Connecting to", device, as_json) as show, reach_device(device, settings, show) as reached:
        taken = take_leases(reached, places, folder, ttl_s, force)
    until_unix_s = time.time() + min(slot.expires_in_s for slot in taken)
    if as_json:
        slots = [{"slot": slot.slot, "expires_in_s": slot.expires_in_s} for slot in taken]
        print_json({"device": device.name, "until": iso_text(until_unix_s), "slots": slots})
    else:
        typer.echo(f"{name} is yours until {moment_text(until_unix_s)}; `sdk devices release {name}` gives it back.")


def release(
    context: typer.Context,
    name: NameArgument,
    force: Annotated[bool, typer.Option("--force", help="End someone else's lease too.")] = False,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a device back that was leased by hand.

    Example: sdk devices release pi5
    """
    from sdk.inventory.connections import connection_settings
    from sdk.inventory.device_access import reach_device
    from sdk.inventory.hand_lease import release_leases
    from sdk.inventory.lookup import open_inventory
    from sdk.output import print_json
    from sdk.settings import read_settings

    given, as_json = chosen_options(context, inventory, as_json)
    settings = read_settings()
    device, places = open_inventory(given, settings).find_slots(name)
    folder = connection_settings(settings).token_folder
    with device_progress("Connecting to", device, as_json) as show, reach_device(device, settings, show) as reached:
        released = release_leases(reached, places, folder, force)
    if as_json:
        print_json({"device": device.name, "released": released})
    else:
        typer.echo(f"{name} is free." if released else f"{name} was not leased any more.")
