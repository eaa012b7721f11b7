"""`sdk devices check`: whether devices are fit to time kernels on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sdk.options.devices_options import InventoryOption, NamesArgument, chosen_options, device_progress
from sdk.options.shared_options import JsonOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from devices.inventory.inventory import InventoryDevice
    from sdk.checks.device_checks import DeviceCheck
    from sdk.settings import Settings


def register(group: typer.Typer) -> None:
    """Add the command to the group."""
    group.command("check")(check)


def check(
    context: typer.Context,
    names: NamesArgument = None,
    every: Annotated[bool, typer.Option("--all", help="Check every device of the inventory.")] = False,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that devices are fit to time on: connection, storage, lease, governor, heat, steady speed, clock.

    Exit code 1 where something is wrong. A device that was left out as unhealthy and passes is used again.

    Example: sdk devices check pi5
    """
    from sdk.inventory.lookup import open_inventory
    from sdk.output import print_json
    from sdk.settings import read_settings
    from targets.errors import UsageError

    given, as_json = chosen_options(context, inventory, as_json)
    settings = read_settings()
    found = open_inventory(given, settings)
    if every == bool(names):
        raise UsageError("Which devices?", next_step="Name them, or give label:LABEL or --all.")
    chosen = found.devices if every else found.choose(names or ())
    if not chosen:
        raise UsageError(f"{found.file} names no devices.", next_step="Add one: `sdk devices add`.")
    answers: list[tuple[InventoryDevice, list[DeviceCheck]]] = []
    for device in chosen:
        with device_progress("Checking", device, as_json) as show:
            answers.append((device, _check(device, settings, show)))
        if not as_json:
            _print_checks(*answers[-1])
    passed = all(check.passed for _, checks in answers for check in checks)
    if as_json:
        print_json({"passed": passed, "devices": [_answer_dict(*answer) for answer in answers]})
    if not passed:
        raise typer.Exit(1)


def _check(device: InventoryDevice, settings: Settings, show: Callable[[str], None]) -> list[DeviceCheck]:
    """Check one device, and remember how it went."""
    from devices.health.health import clear_health
    from sdk.checks.device_checks import check_device
    from sdk.inventory.connections import health_folder
    from sdk.inventory.device_access import reach_device

    checks = check_device(device, lambda: reach_device(device, settings, show), show)
    if all(check.passed for check in checks):
        clear_health(health_folder(settings), device.address)
    return checks


def _answer_dict(device: InventoryDevice, checks: list[DeviceCheck]) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "name": device.name,
        "passed": all(check.passed for check in checks),
        "checks": [asdict(check) for check in checks],
    }


def _print_checks(device: InventoryDevice, checks: list[DeviceCheck]) -> None:
    from rich.table import Table
    from rich.text import Text

    from sdk.output import make_console

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for one in checks:
        mark = Text("passed", style="green") if one.passed else Text("failed", style="red")
        table.add_row(mark, Text(one.name), Text(one.found))
        if one.fix:
            table.add_row("", "", Text(one.fix, style="yellow"))
    console = make_console()
    console.print(Text(device.name, style="cyan"))
    console.print(table)
