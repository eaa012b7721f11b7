"""`sdk devices add`: a new device, connected to, probed and written into the inventory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sdk.options.devices_options import InventoryOption, chosen_options, device_progress
from sdk.options.shared_options import JsonOption, complete_target_names

if TYPE_CHECKING:
    from devices.health.probe import DeviceProbe
    from devices.inventory.inventory import InventoryDevice
    from sdk.settings import Settings


_NewName = Annotated[str, typer.Argument(metavar="NAME", help="What to call the device.")]
_Ssh = Annotated[
    str | None, typer.Option("--ssh", metavar="ADDRESS", help="user@host:port, or a Host of ~/.ssh/config.")
]
_Adb = Annotated[str | None, typer.Option("--adb", metavar="ADDRESS", help="host:port of an Android device.")]
_Usb = Annotated[bool, typer.Option("--usb", help="An Android device on a USB cable.")]
_Serial = Annotated[str | None, typer.Option("--serial", help="Serial number of the Android device.")]
_Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="PROFILE",
        help="Its target profile; guessed from the probe without it.",
        autocompletion=complete_target_names,
    ),
]
_Labels = Annotated[list[str] | None, typer.Option("--label", help="A label; repeat for more.")]
_IdentityFile = Annotated[
    str | None, typer.Option("--identity-file", metavar="FILE", help="The private key to log in with.")
]
_Jumps = Annotated[
    list[str] | None,
    typer.Option("--jump", metavar="HOST", help="A host on the way; repeat for more, outermost first."),
]
_Password = Annotated[
    str | None, typer.Option("--password", metavar="SOURCE", help="prompt or keyring, where keys are not enough.")
]
_Cores = Annotated[
    str | None, typer.Option("--cores", metavar="LIST", help="Cores to time on, such as 2-3,6; all without it.")
]
_Slots = Annotated[int | None, typer.Option("--slots", help="Kernels timed at once, each on its share of the cores.")]
_Folder = Annotated[str | None, typer.Option("--folder", metavar="PATH", help="Where to work on the device.")]
_Probe = Annotated[bool, typer.Option("--probe/--no-probe", help="Connect and look at it first.")]


def register(group: typer.Typer) -> None:
    """Add the command to the group."""
    group.command("add")(add)


def add(
    context: typer.Context,
    name: _NewName,
    ssh: _Ssh = None,
    adb: _Adb = None,
    usb: _Usb = False,
    serial: _Serial = None,
    target: _Target = None,
    label: _Labels = None,
    identity_file: _IdentityFile = None,
    jump: _Jumps = None,
    password: _Password = None,
    cores: _Cores = None,
    slots: _Slots = None,
    folder: _Folder = None,
    probe: _Probe = True,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a device: connect to it, look at it, and write it into the inventory.

    Example: sdk devices add pi5 --ssh pi@192.168.1.20 --label kitchen
    """
    from sdk.settings import read_settings

    given, as_json = chosen_options(context, inventory, as_json)
    settings = read_settings()
    fields: dict[str, object] = {
        "profile": target,
        **_transport_fields(ssh, adb, usb, serial),
        "identity_file": _key_path(identity_file),
        "jump": jump,
        "password": password,
        "labels": label,
        "slots": slots,
        "cores": cores,
        "folder": folder,
    }
    file, device = _checked(name, {key: value for key, value in fields.items() if value is not None}, given, settings)
    if target is None and not probe:
        raise _usage("Without a probe the device's profile is not known.", "Name it with --target.")
    found = _probe(device, settings, as_json) if probe else None
    device = device if found is None else _with_probe(device, found, target, settings)
    _write(file, device, found, as_json)


def _transport_fields(ssh: str | None, adb: str | None, usb: bool, serial: str | None) -> dict[str, object]:
    if sum((ssh is not None, adb is not None, usb)) != 1:
        raise _usage("A device is reached in one way.", "Give one of --ssh ADDRESS, --adb ADDRESS and --usb.")
    fields: dict[str, object] = {"transport": "adb" if ssh is None else "ssh", "address": ssh or adb, "serial": serial}
    return {key: value for key, value in fields.items() if value is not None}


def _key_path(text: str | None) -> str | None:
    """A key's path that means the same in every folder."""
    return text if text is None or text.startswith("~/") else str(Path(text).absolute())


def _checked(
    name: str, fields: dict[str, object], given: Path | None, settings: Settings
) -> tuple[Path, InventoryDevice]:
    """Return the inventory's file and the device, with everything checked that needs no connection."""
    from devices.inventory.fields import read_device
    from devices.inventory.file import check_new_name, load_inventory
    from sdk.inventory.lookup import find_inventory_file
    from targets.errors import DeviceError, UsageError
    from targets.profile.loader import profile_names

    file = find_inventory_file(given, settings)
    names = profile_names(settings.profile_folder)
    check_new_name(load_inventory(file, names), name)
    # The name of a profile that is still to be guessed; every machine has `host`.
    complete = {"profile": names[0], **fields}
    try:
        return file, read_device(name, complete, "sdk devices add", names)
    except DeviceError as error:
        raise UsageError(error.message, next_step=error.next_step) from error


def _probe(device: InventoryDevice, settings: Settings, quiet: bool) -> DeviceProbe:
    from sdk.inventory.device_access import reach_device

    with device_progress("Connecting to", device, quiet) as show, reach_device(device, settings, show) as reached:
        return reached.probe()


def _with_probe(device: InventoryDevice, found: DeviceProbe, target: str | None, settings: Settings) -> InventoryDevice:
    import time

    from sdk.display.quantities import iso_text
    from sdk.inventory.device_facts import check_cores, check_profile, facts_of, guess_profile, machine_of
    from targets.profile.loader import load_profile, profile_names

    check_cores(device, found)
    if target is not None:
        check_profile(target, load_profile(target, settings.profile_folder).halide_target, found)
    return replace(
        device,
        profile_name=target or guess_profile(found, profile_names(settings.profile_folder)),
        emulated=found.emulated,
        machine=machine_of(found, device.cores),
        probed=facts_of(found, iso_text(time.time())),
    )


def _write(file: Path, device: InventoryDevice, found: DeviceProbe | None, as_json: bool) -> None:
    from devices.inventory.fields import device_fields
    from devices.inventory.file import add_device
    from sdk.commands.devices.probe import print_probe, probe_dict
    from sdk.output import print_json

    add_device(file, device)
    if as_json:
        probed = None if found is None else probe_dict(device, found)
        entry = {"name": device.name, **device_fields(device)}
        print_json({"inventory": str(file), "device": entry, "probe": probed})
        return
    if found is not None:
        print_probe(device, found)
    typer.echo(f"{device.name} has profile {device.profile_name} and is written in {file}.")


def _usage(message: str, next_step: str) -> Exception:
    from targets.errors import UsageError

    return UsageError(message, next_step=next_step)
