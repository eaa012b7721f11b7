"""`sdk devices probe` and `sdk devices check`: what devices are made of, and whether they are fit to time on."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.commands.doctor import print_checks
from halide_autotune.sdk.display.quantities import iso_text
from halide_autotune.sdk.options.devices_options import (
    InventoryOption,
    NamesArgument,
    device_progress,
    open_chosen_inventory,
)
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import print_fields, print_json
from halide_autotune.targets.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from halide_autotune.devices.health.probe import DeviceProbe
    from halide_autotune.devices.inventory.inventory import InventoryDevice
    from halide_autotune.sdk.checks.check import Check
    from halide_autotune.sdk.settings import Settings


def probe(
    context: typer.Context,
    names: NamesArgument = None,
    write: Annotated[bool, typer.Option("--write", help="Write the result to the inventory; searches use it.")] = False,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what devices are made of: processor, cores, caches, memory, system, temperatures, an NVIDIA card.

    Example: sdk devices probe pi5 --write
    """
    from halide_autotune.devices.inventory.file import update_device
    from halide_autotune.sdk.inventory.device_access import reach_device
    from halide_autotune.sdk.inventory.device_facts import facts_of, machine_of
    from halide_autotune.sdk.select.card_choice import describe_card

    found, settings, as_json = open_chosen_inventory(context, inventory, as_json)
    if not names:
        raise UsageError("No device was named.", next_step="Name one or more, or give label:LABEL.")
    answers: list[dict[str, object]] = []
    for device in found.choose(names):
        with device_progress("Probing", device, as_json) as show, reach_device(device, settings, show) as reached:
            probed = reached.probe()
        if write:
            facts = facts_of(probed, iso_text(time.time()))
            update_device(found.file, device.name, machine_of(probed, device.place.cores), facts)
        card = describe_card(device, settings)
        answers.append(probe_dict(device, probed) | ({"card": card} if card else {}))
        if not as_json:
            print_probe(device, probed)
            if card:
                typer.echo(f"card: {card}")
    if as_json:
        print_json({"inventory": str(found.file), "written": write, "devices": answers})
    elif write:
        typer.echo(f"Written to {found.file}.")


def probe_dict(device: InventoryDevice, probed: DeviceProbe) -> dict[str, object]:
    """Return everything that was found, JSON-ready."""
    from halide_autotune.sdk.inventory.device_facts import fast_cores, machine_of

    machine = machine_of(probed, device.place.cores).known()
    return {
        "name": device.name,
        **asdict(probed),
        "fast_cores": list(fast_cores(probed)),
        "machine_parameters": machine,
    }


def print_probe(device: InventoryDevice, probed: DeviceProbe) -> None:
    """Print what was found as a table, and which cores are worth timing on."""
    from halide_autotune.sdk.inventory.device_facts import cores_text, fast_cores

    typer.echo(device.name)
    print_fields(_probe_fields(device, probed))
    fast = fast_cores(probed)
    if fast and device.place.cores != fast:
        cores = cores_text(fast)
        typer.echo(f'Its fast cores are {cores}. To time on them alone, set cores = "{cores}" in the inventory.')


def _probe_fields(device: InventoryDevice, probed: DeviceProbe) -> Iterator[tuple[str, str]]:
    """Yield what the device tells, a line each."""
    from halide_autotune.sdk.inventory.device_facts import cores_text, facts_of, fast_cores, machine_of

    for key, fact in facts_of(probed, ""):
        if key == "fast_cores":
            yield "fast cores", cores_text(fast_cores(probed))
        elif key.endswith("_hz") and isinstance(fact, float | int):
            yield key.removesuffix("_hz").replace("_", " ") + " frequency", f"{fact / 1e6:.0f} MHz"
        elif isinstance(fact, tuple):
            yield key.replace("_", " "), ", ".join(str(item) for item in fact)
        else:
            yield _field(key, fact)
    if probed.temperature_zones:
        yield "hottest", f"{max(zone.celsius for zone in probed.temperature_zones):.0f} °C"
    for key, value in machine_of(probed, device.place.cores).known().items():
        yield _field(key, value)


def _field(key: str, value: object) -> tuple[str, str]:
    name, bytes_word, _ = key.partition("_bytes")
    shown = name.replace("_", " ")
    if bytes_word and isinstance(value, float | int):
        return shown, f"{value / 2**20:,.0f} MiB" if value >= 2**20 else f"{value / 2**10:.0f} KiB"
    return shown, str(value)


def check(
    context: typer.Context,
    names: NamesArgument = None,
    every: Annotated[bool, typer.Option("--all", help="Check every device of the inventory.")] = False,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that devices are fit to time on: connection, storage, lease, governor, heat, steady speed, clock.

    The exit code is 1 if a check fails. An unhealthy device that passes is used again.

    Example: sdk devices check pi5
    """
    found, settings, as_json = open_chosen_inventory(context, inventory, as_json)
    if every and names:
        raise UsageError("--all cannot be combined with names.", next_step="Leave one of them out.")
    if not every and not names:
        raise UsageError("No device was named.", next_step="Name one or more, or give label:LABEL or --all.")
    chosen = found.devices if every else found.choose(names or ())
    if not chosen:
        raise UsageError(f"{found.file} has no devices.", next_step="Add one with `sdk devices add`.")
    answers: list[tuple[InventoryDevice, list[Check]]] = []
    for device in chosen:
        with device_progress("Checking", device, as_json) as show:
            answers.append((device, _check(device, settings, show)))
        if not as_json:
            typer.echo(device.name)
            print_checks(answers[-1][1], "passed", "failed")
    passed = all(one.passed for _, checks in answers for one in checks)
    if as_json:
        print_json({"passed": passed, "devices": [_check_dict(*answer) for answer in answers]})
    if not passed:
        raise typer.Exit(1)


def _check(device: InventoryDevice, settings: Settings, show: Callable[[str], None]) -> list[Check]:
    """Check one device; one that passes is no longer unhealthy."""
    from halide_autotune.devices.health.health import clear_health
    from halide_autotune.sdk.checks.device_checks import check_device
    from halide_autotune.sdk.inventory.connections import health_folder
    from halide_autotune.sdk.inventory.device_access import reach_device

    checks = check_device(device, lambda: reach_device(device, settings, show), show)
    if all(one.passed for one in checks):
        clear_health(health_folder(settings), device.place.address)
    return checks


def _check_dict(device: InventoryDevice, checks: list[Check]) -> dict[str, object]:
    return {
        "name": device.name,
        "passed": all(one.passed for one in checks),
        "checks": [{"name": one.name, "passed": one.passed, "found": one.found, "fix": one.fix} for one in checks],
    }
