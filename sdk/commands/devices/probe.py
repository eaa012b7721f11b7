"""`sdk devices probe`: what a device is made of."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from sdk.options.devices_options import InventoryOption, NamesArgument, chosen_options, device_progress
from sdk.options.shared_options import JsonOption

if TYPE_CHECKING:
    from devices.health.probe import DeviceProbe
    from devices.inventory.inventory import InventoryDevice


def register(group: typer.Typer) -> None:
    """Add the command to the group."""
    group.command("probe")(probe)


def probe(
    context: typer.Context,
    names: NamesArgument = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write it into the inventory, for the search and for people.")
    ] = False,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at devices: processor, cores, caches, frequencies, memory, system, temperatures, and an NVIDIA card.

    Example: sdk devices probe pi5 --write
    """
    from devices.inventory.file import update_device
    from sdk.display.quantities import iso_text
    from sdk.inventory.device_access import reach_device
    from sdk.inventory.device_facts import facts_of, machine_of
    from sdk.inventory.lookup import open_inventory
    from sdk.output import print_json
    from sdk.select.card_choice import describe_card
    from sdk.settings import read_settings
    from targets.errors import UsageError

    given, as_json = chosen_options(context, inventory, as_json)
    if not names:
        raise UsageError("No device was named.", next_step="Name one or more, or label:LABEL.")
    settings = read_settings()
    found = open_inventory(given, settings)
    chosen = found.choose(names)
    answers: list[dict[str, object]] = []
    for device in chosen:
        with device_progress("Looking at", device, as_json) as show, reach_device(device, settings, show) as reached:
            probed = reached.probe()
        if write:
            facts = facts_of(probed, iso_text(time.time()))
            update_device(found.file, device.name, machine_of(probed, device.cores), facts)
        card = describe_card(device, settings)
        answers.append(probe_dict(device, probed) | ({"card": card} if card else {}))
        if not as_json:
            print_probe(device, probed)
            if card:
                typer.echo(f"card: {card}")
    if as_json:
        print_json({"inventory": str(found.file), "written": write, "devices": answers})
    elif write:
        typer.echo(f"Written in {found.file}.")


def probe_dict(device: InventoryDevice, probed: DeviceProbe) -> dict[str, object]:
    """Return everything that was found, JSON-ready."""
    from dataclasses import asdict

    from devices.inventory.fields import machine_fields
    from sdk.inventory.device_facts import fast_cores, machine_of

    machine = machine_fields(machine_of(probed, device.cores))
    return {
        "name": device.name,
        **asdict(probed),
        "fast_cores": list(fast_cores(probed)),
        "machine_parameters": machine,
    }


def print_probe(device: InventoryDevice, probed: DeviceProbe) -> None:
    """Print what was found as a table, and which cores are worth timing on."""
    from rich.table import Table
    from rich.text import Text

    from sdk.inventory.device_facts import cores_text, fast_cores
    from sdk.output import make_console

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in _lines(device, probed):
        table.add_row(key, Text(value))
    console = make_console()
    console.print(Text(device.name, style="cyan"))
    console.print(table)
    fast = fast_cores(probed)
    if fast and device.cores != fast:
        hint = f'Its fast cores are {cores_text(fast)}: with cores = "{cores_text(fast)}" kernels run on them alone.'
        console.print(Text(hint, style="yellow"))


def _lines(device: InventoryDevice, probed: DeviceProbe) -> list[tuple[str, str]]:
    """What was found, a line each; what the device does not tell is left out."""
    from devices.inventory.fields import machine_fields
    from sdk.inventory.device_facts import cores_text, facts_of, fast_cores, machine_of

    lines = []
    for key, fact in facts_of(probed, ""):
        if key == "fast_cores":
            lines.append(("fast cores", cores_text(fast_cores(probed))))
        elif key.endswith("_hz") and isinstance(fact, float | int):
            lines.append((key.removesuffix("_hz").replace("_", " ") + " frequency", f"{fact / 1e6:.0f} MHz"))
        elif isinstance(fact, tuple):
            lines.append((key.replace("_", " "), ", ".join(str(item) for item in fact)))
        else:
            lines.append(_line(key, fact))
    if probed.temperature_zones:
        hottest = max(zone.celsius for zone in probed.temperature_zones)
        lines.append(("hottest", f"{hottest:.0f} °C"))
    machine = machine_fields(machine_of(probed, device.cores))
    return lines + [_line(key, value) for key, value in machine.items()]


def _line(key: str, value: object) -> tuple[str, str]:
    name, bytes_word, _ = key.partition("_bytes")
    shown = name.replace("_", " ")
    if bytes_word and isinstance(value, float | int):
        return shown, f"{value / 2**20:,.0f} MiB" if value >= 2**20 else f"{value / 2**10:.0f} KiB"
    return shown, str(value)
