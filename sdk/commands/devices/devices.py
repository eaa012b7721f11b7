"""`sdk devices`: the devices of the inventory and their state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.commands.devices.entry import add, password, remove
from halide_autotune.sdk.commands.devices.examine import check, probe
from halide_autotune.sdk.commands.devices.lease import lease, release
from halide_autotune.sdk.display.quantities import count_text, duration_text, iso_text, moment_text
from halide_autotune.sdk.options.devices_options import InventoryOption, open_chosen_inventory
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress
from halide_autotune.sdk.settings import read_settings

if TYPE_CHECKING:
    from rich.text import Text

    from halide_autotune.devices.inventory.inventory import Inventory
    from halide_autotune.sdk.inventory.device_listing import DeviceState


group = typer.Typer(name="devices")
for command in (add, remove, password, probe, check, lease, release):
    group.command()(command)


@group.callback(invoke_without_command=True)
def devices(
    context: typer.Context,
    offline: Annotated[bool, typer.Option("--offline", help="Do not connect to the devices.")] = False,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the devices of the inventory and their state; add, probe, check and lease them.

    Example: sdk devices
    """
    if context.invoked_subcommand is not None:
        context.obj = (inventory, as_json)
        return

    found, _, as_json = open_chosen_inventory(context, inventory, as_json)
    states = _states(found, offline, as_json)
    if as_json:
        print_json({"inventory": str(found.file), "devices": [_state_dict(state) for state in states]})
    else:
        _print_table(found, states)


def _states(inventory: Inventory, offline: bool, quiet: bool) -> list[DeviceState]:
    from halide_autotune.sdk.inventory.device_listing import ask_devices, health_of

    settings = read_settings()
    if offline or not inventory.devices:
        return ask_devices(inventory.devices, None, health_of(settings))
    # Imported here: the modules that talk to devices take long to import.
    from halide_autotune.sdk.inventory.device_access import device_states

    with show_progress(f"Asking {count_text(len(inventory.devices), 'device')} …", quiet):
        return device_states(inventory.devices, settings)


def _state_dict(state: DeviceState) -> dict[str, object]:
    from halide_autotune.devices.inventory.fields import device_fields

    health = state.health
    return {
        "name": state.device.name,
        **device_fields(state.device),
        "slots": state.device.slots,
        "state": state.status.value,
        "trouble": state.trouble or None,
        "leases": [
            {"slot": lease.slot, "owner": lease.owner, "held_s": lease.since_s, "expires_in_s": lease.expires_in_s}
            for lease in state.leases
        ],
        "unhealthy": None
        if health is None
        else {
            "kind": health.kind.value,
            "message": health.message,
            "failures": health.failures,
            "since": iso_text(health.since_unix_s),
            "next_check": iso_text(health.next_check_unix_s),
        },
    }


def _print_table(inventory: Inventory, states: list[DeviceState]) -> None:
    console = make_console()
    if not states:
        console.print(f"No devices yet in {inventory.file}. Add one with `sdk devices add`.")
        return
    table = plain_table("device", "profile", "address", "labels", "state")
    for state in states:
        device = state.device
        table.add_row(
            device.name,
            device.profile_name,
            f"{device.transport} {device.place.address.describe()}",
            ", ".join(device.labels),
            _state_text(state),
        )
    console.print(table)
    console.print(f"The inventory is {inventory.file}.", style="dim")


def _state_text(state: DeviceState) -> Text:
    from rich.text import Text

    from halide_autotune.sdk.inventory.device_listing import DeviceStatus

    styles = {DeviceStatus.FREE: "green", DeviceStatus.LEASED: "yellow", DeviceStatus.NOT_ASKED: "dim"}
    parts = []
    if state.status is DeviceStatus.UNREACHABLE:
        parts.append(f"unreachable: {state.trouble.rstrip('.')}")
    if state.health is not None:
        since, again = moment_text(state.health.since_unix_s), moment_text(state.health.next_check_unix_s)
        message = state.health.message.removeprefix(f"{state.device.name}: ")
        reason = f": {message}" if message != state.trouble else ""
        parts.append(f"unhealthy{reason} (since {since}, next check {again})")
    for held in state.leases:
        slot = f"slot {held.slot + 1} " if state.device.slots > 1 else ""
        since_text, left = duration_text(held.since_s), duration_text(held.expires_in_s)
        parts.append(f"{slot}leased by {held.owner} for {since_text} (ends in {left})")
    return Text("; ".join(parts) or state.status.value, style=styles.get(state.status, "red"))
