"""`sdk devices lease` and `sdk devices release`: keep a device to yourself."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from halide_autotune.sdk.display.quantities import iso_text, moment_text
from halide_autotune.sdk.options.devices_options import (
    InventoryOption,
    NameArgument,
    device_progress,
    open_chosen_inventory,
)
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import print_json


def lease(
    context: typer.Context,
    name: NameArgument,
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long: 90s, 10m, 2h.")] = "2h",
    force: Annotated[bool, typer.Option("--force", help="Take the device from its current holder.")] = False,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Lease a device: your own runs use it, other users' runs do not. Run it again to renew the lease.

    Example: sdk devices lease pi5 --for 2h
    """
    from halide_autotune.sdk.inventory.device_access import reach_device
    from halide_autotune.sdk.inventory.hand_lease import parse_lease_s, take_leases

    ttl_s = parse_lease_s(duration)
    found, settings, as_json = open_chosen_inventory(context, inventory, as_json)
    device, places = found.find_slots(name)
    with device_progress("Connecting to", device, as_json) as show, reach_device(device, settings, show) as reached:
        taken = take_leases(reached, places, ttl_s, force)
    until_unix_s = time.time() + min(slot.expires_in_s for slot in taken)
    if as_json:
        slots = [{"slot": slot.slot, "expires_in_s": slot.expires_in_s} for slot in taken]
        print_json({"device": device.name, "until": iso_text(until_unix_s), "slots": slots})
    else:
        typer.echo(f"Leased {name} until {moment_text(until_unix_s)}. Give it back with `sdk devices release {name}`.")


def release(
    context: typer.Context,
    name: NameArgument,
    force: Annotated[bool, typer.Option("--force", help="End another user's lease, too.")] = False,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give back a device that was leased with `sdk devices lease`.

    Example: sdk devices release pi5
    """
    from halide_autotune.sdk.inventory.device_access import reach_device
    from halide_autotune.sdk.inventory.hand_lease import release_leases

    found, settings, as_json = open_chosen_inventory(context, inventory, as_json)
    device, places = found.find_slots(name)
    with device_progress("Connecting to", device, as_json) as show, reach_device(device, settings, show) as reached:
        released = release_leases(reached, places, force)
    if as_json:
        print_json({"device": device.name, "released": released})
    else:
        typer.echo(f"Released {name}." if released else f"{name} was no longer leased.")
