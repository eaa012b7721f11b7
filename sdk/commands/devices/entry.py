"""`sdk devices add`, `remove` and `password`: the entries of the inventory, and their passwords."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sdk.display.quantities import iso_text
from sdk.options.devices_options import (
    InventoryOption,
    NameArgument,
    chosen_options,
    device_progress,
    open_chosen_inventory,
)
from sdk.options.shared_options import JsonOption, complete_target_names
from sdk.output import print_json
from sdk.settings import read_settings
from targets.errors import DeviceError, UsageError

if TYPE_CHECKING:
    from devices.health.probe import DeviceProbe
    from devices.inventory.inventory import InventoryDevice
    from sdk.settings import Settings


_NewName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the new device.")]
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
        help="Its target profile. [default: from the probe]",
        autocompletion=complete_target_names,
    ),
]
_Labels = Annotated[list[str] | None, typer.Option("--label", help="A label. Repeatable.")]
_IdentityFile = Annotated[
    str | None, typer.Option("--identity-file", metavar="FILE", help="The private key to log in with.")
]
_Jumps = Annotated[
    list[str] | None,
    typer.Option("--jump", metavar="HOST", help="An SSH host to connect through. Repeatable, outermost first."),
]
_Password = Annotated[
    str | None, typer.Option("--password", metavar="SOURCE", help="prompt or keyring, if keys are not enough.")
]
_Cores = Annotated[
    str | None, typer.Option("--cores", metavar="LIST", help="Cores to time on, such as 2-3,6. [default: all]")
]
_Slots = Annotated[int | None, typer.Option("--slots", help="Kernels timed at once, each on its share of the cores.")]
_Folder = Annotated[str | None, typer.Option("--folder", metavar="PATH", help="The folder to work in on the device.")]
_Probe = Annotated[bool, typer.Option("--probe/--no-probe", help="Connect and probe it first.")]


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
    """Add a device: connect to it, probe it, and write it to the inventory.

    Example: sdk devices add pi5 --ssh pi@192.168.1.20 --label kitchen
    """
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
        raise UsageError("Without a probe the device's profile is not known.", next_step="Name it with --target.")
    found = _probe(device, settings, as_json) if probe else None
    device = device if found is None else _with_probe(device, found, target, settings)
    _write(file, device, found, as_json)


def _transport_fields(ssh: str | None, adb: str | None, usb: bool, serial: str | None) -> dict[str, object]:
    if sum((ssh is not None, adb is not None, usb)) != 1:
        raise UsageError("A device is reached in one way.", next_step="Give one of --ssh, --adb and --usb.")
    fields: dict[str, object] = {"transport": "adb" if ssh is None else "ssh", "address": ssh or adb, "serial": serial}
    return {key: value for key, value in fields.items() if value is not None}


def _key_path(text: str | None) -> str | None:
    """Return a key's path that is valid in every folder."""
    return text if text is None or text.startswith("~/") else str(Path(text).absolute())


def _checked(
    name: str, fields: dict[str, object], given: Path | None, settings: Settings
) -> tuple[Path, InventoryDevice]:
    """Return the inventory's file and the device, after all checks that need no connection."""
    from devices.inventory.fields import read_device
    from devices.inventory.file import check_new_name, load_inventory
    from sdk.inventory.lookup import find_inventory_file
    from targets.profile.loader import profile_names

    file = find_inventory_file(given, settings)
    names = profile_names(settings.profile_folder)
    check_new_name(load_inventory(file, names), name)
    # A stand-in for a profile that is not known yet; every machine has `host`.
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
    from sdk.inventory.device_facts import check_cores, check_profile, facts_of, guess_profile, machine_of
    from targets.profile.loader import load_profile, profile_names

    check_cores(device, found)
    if target is not None:
        check_profile(target, load_profile(target, settings.profile_folder).halide_target, found)
    return replace(
        device,
        profile_name=target or guess_profile(found, profile_names(settings.profile_folder)),
        emulated=found.emulated,
        machine=machine_of(found, device.place.cores),
        probed=facts_of(found, iso_text(time.time())),
    )


def _write(file: Path, device: InventoryDevice, found: DeviceProbe | None, as_json: bool) -> None:
    from devices.inventory.fields import device_fields
    from devices.inventory.file import add_device
    from sdk.commands.devices.examine import print_probe, probe_dict

    add_device(file, device)
    if as_json:
        probed = None if found is None else probe_dict(device, found)
        entry = {"name": device.name, **device_fields(device)}
        print_json({"inventory": str(file), "device": entry, "probe": probed})
        return
    if found is not None:
        print_probe(device, found)
    typer.echo(f"Added {device.name} with profile {device.profile_name} to {file}.")


def remove(
    context: typer.Context, name: NameArgument, inventory: InventoryOption = None, as_json: JsonOption = False
) -> None:
    """Remove a device from the inventory.

    Example: sdk devices remove pi5
    """
    from devices.health.health import clear_health
    from devices.inventory.file import remove_device
    from sdk.inventory.connections import health_folder

    found, settings, as_json = open_chosen_inventory(context, inventory, as_json)
    device = found.find(name)
    remove_device(found.file, name)
    clear_health(health_folder(settings), device.place.address)
    if as_json:
        print_json({"inventory": str(found.file), "removed": name})
    else:
        typer.echo(f"Removed {name} from {found.file}.")


def password(
    context: typer.Context, name: NameArgument, inventory: InventoryOption = None, as_json: JsonOption = False
) -> None:
    """Ask for a device's password, or its key's passphrase, and save it in the system's keyring.

    Example: sdk devices password pi5
    """
    from devices.remote_place import PasswordSource, SshAddress
    from devices.ssh.secrets import keyring_account, write_keyring
    from sdk.inventory.connections import ask_on_terminal, connection_settings

    found, settings, as_json = open_chosen_inventory(context, inventory, as_json)
    device = found.find(name)
    if not isinstance(device.place.address, SshAddress):
        raise UsageError(f"Device '{name}' is reached over ADB, which has no passwords.")
    account = keyring_account(device.place.address, connection_settings(settings))
    try:
        write_keyring(account, ask_on_terminal(f"Password of {name} ({account}): "))
    except DeviceError as error:
        raise DeviceError(
            f"The password of '{name}' cannot be saved: {error.message}.", next_step=error.next_step
        ) from error
    used = device.place.address.password_source is PasswordSource.KEYRING
    if as_json:
        print_json({"device": name, "used": used})
        return
    hint = "" if used else f' To use it, set password = "{PasswordSource.KEYRING.value}" for the device.'
    typer.echo(f"Saved the password of {name} in the keyring.{hint}")
