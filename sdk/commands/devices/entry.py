"""`sdk devices add`, `remove` and `password`: the entries of the inventory, and their passwords."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halide_autotune.sdk.display.quantities import iso_text
from halide_autotune.sdk.options.devices_options import (
    InventoryOption,
    NameArgument,
    chosen_options,
    device_progress,
    open_chosen_inventory,
)
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.output import print_json
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.errors import DeviceError, UsageError
from halide_autotune.targets.values.options import Option
from halide_autotune.targets.values.records import plain

if TYPE_CHECKING:
    from halide_autotune.devices.health.probe import DeviceProbe
    from halide_autotune.devices.inventory.inventory import InventoryDevice
    from halide_autotune.sdk.settings import Settings


def _key_path(text: str) -> str:
    """Return a key's path that is valid in every folder."""
    return text if text.startswith("~/") else str(Path(text).absolute())


@dataclass(frozen=True)
class DeviceLogin:
    """How a new device is reached, and the keys of its entry for that, by their names."""

    ssh: Annotated[
        str | None, Option("--ssh", metavar="ADDRESS", help="user@host:port, or a Host of ~/.ssh/config.")
    ] = None
    adb: Annotated[str | None, Option("--adb", metavar="ADDRESS", help="host:port of an Android device.")] = None
    usb: Annotated[bool, Option("--usb", help="An Android device on a USB cable.")] = False
    url: Annotated[
        str | None,
        Option("--url", metavar="NAME://...", help="What a package's transport reaches; `sdk doctor` lists those."),
    ] = None
    serial: Annotated[str | None, Option("--serial", metavar="NUMBER", help="Serial number of the Android device.")] = (
        None
    )
    identity_file: Annotated[
        str | None,
        Option("--identity-file", metavar="FILE", help="The private key to log in with.", parse=_key_path),
    ] = None
    jump: Annotated[
        tuple[str, ...],
        Option("--jump", metavar="HOST", help="An SSH host to connect through. Repeatable, outermost first."),
    ] = ()
    password: Annotated[
        str | None, Option("--password", metavar="SOURCE", help="prompt or keyring, if keys are not enough.")
    ] = None


@dataclass(frozen=True)
class NewDevice:
    """The other keys of a new device's entry, by their names."""

    profile: Annotated[
        str | None,
        Option(
            "--target",
            "-t",
            metavar="PROFILE",
            help="Its target profile. [default: from the probe]",
            complete="targets",
        ),
    ] = None
    labels: Annotated[tuple[str, ...], Option("--label", metavar="LABEL", help="A label. Repeatable.")] = ()
    cores: Annotated[
        str | None, Option("--cores", metavar="LIST", help="Cores to time on, such as 2-3,6. [default: all]")
    ] = None
    slots: Annotated[
        int | None, Option("--slots", metavar="COUNT", help="Kernels timed at once, each on its share of the cores.")
    ] = None
    folder: Annotated[str | None, Option("--folder", metavar="PATH", help="The folder to work in on the device.")] = (
        None
    )


@with_options
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new device.")],
    typed: Annotated[Mapping[str, Any], Takes(DeviceLogin, NewDevice)],
    probe: Annotated[bool, typer.Option("--probe/--no-probe", help="Connect and probe it first.")] = True,
    inventory: InventoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a device: connect to it, probe it, and write it to the inventory.

    Example: sdk devices add pi5 --ssh pi@192.168.1.20 --label kitchen
    """
    from halide_autotune.sdk.inventory.device_access import reach_device

    given, as_json = chosen_options(context, inventory, as_json)
    settings = read_settings()
    file, device = _checked(name, _fields(typed), given, settings)
    if "profile" not in typed and not probe:
        raise UsageError("Without a probe the device's profile is not known.", next_step="Name it with --target.")
    found = None
    if probe:
        with device_progress("Connecting to", device, as_json) as show, reach_device(device, settings, show) as reached:
            found = reached.probe()
        device = _with_probe(device, found, "profile" in typed, settings)
    _write(file, device, found, as_json)


def _fields(typed: Mapping[str, Any]) -> dict[str, object]:
    """The keys of the entry."""
    ways = [way for way in ("ssh", "adb", "usb", "url") if way in typed]
    if len(ways) != 1:
        raise UsageError("A device is reached in one way.", next_step="Give one of --ssh, --adb, --usb and --url.")
    (way,) = ways
    if way == "url" and "://" not in typed[way]:
        raise UsageError(
            f"--url got {typed[way]!r}; expected NAME://…, where NAME is a package's transport.",
            next_step="`sdk doctor` lists the transports of packages.",
        )
    fields = {key: plain(value) for key, value in typed.items() if key != way}
    if way != "url":  # a URL names its transport by itself
        fields["transport"] = "ssh" if way == "ssh" else "adb"
    return fields if way == "usb" else {**fields, "address": typed[way]}


def _checked(
    name: str, fields: dict[str, object], given: Path | None, settings: Settings
) -> tuple[Path, InventoryDevice]:
    """Return the inventory's file and the device, after all checks that need no connection."""
    from halide_autotune.devices.inventory.fields import read_device
    from halide_autotune.devices.inventory.file import check_new_name, load_inventory
    from halide_autotune.sdk.inventory.lookup import find_inventory_file
    from halide_autotune.targets.profile.loader import profile_names

    file = find_inventory_file(given, settings)
    names = profile_names(settings.profile_folder)
    check_new_name(load_inventory(file, names), name)
    # A stand-in for a profile that is not known yet; every machine has `host`.
    complete = {"profile": names[0], **fields}
    try:
        return file, read_device(name, complete, "sdk devices add", names)
    except DeviceError as error:
        raise UsageError(error.message, next_step=error.next_step) from error


def _with_probe(device: InventoryDevice, found: DeviceProbe, has_profile: bool, settings: Settings) -> InventoryDevice:
    from halide_autotune.sdk.inventory.device_facts import (
        check_cores,
        check_profile,
        facts_of,
        guess_profile,
        machine_of,
    )
    from halide_autotune.targets.profile.loader import load_profile

    check_cores(device, found)
    name = device.profile_name
    if has_profile:
        check_profile(name, load_profile(name, settings.profile_folder).halide_target, found)
    else:
        name = guess_profile(found)
    return replace(
        device,
        profile_name=name,
        emulated=found.emulated,
        machine=machine_of(found, device.place.cores),
        probed=facts_of(found, iso_text(time.time())),
    )


def _write(file: Path, device: InventoryDevice, found: DeviceProbe | None, as_json: bool) -> None:
    from halide_autotune.devices.inventory.fields import device_fields
    from halide_autotune.devices.inventory.file import add_device
    from halide_autotune.sdk.commands.devices.examine import print_probe, probe_dict

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
    from halide_autotune.devices.health.health import clear_health
    from halide_autotune.devices.inventory.file import remove_device
    from halide_autotune.sdk.inventory.connections import health_folder

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
    from halide_autotune.devices.remote_place import AdbAddress, PasswordSource, SshAddress
    from halide_autotune.devices.ssh.secrets import keyring_account, write_keyring
    from halide_autotune.sdk.inventory.connections import ask_on_terminal, connection_settings

    found, settings, as_json = open_chosen_inventory(context, inventory, as_json)
    device = found.find(name)
    if not isinstance(device.place.address, SshAddress):
        over = "ADB" if isinstance(device.place.address, AdbAddress) else device.transport
        raise UsageError(f"Device '{name}' is reached over {over}, which has no passwords.")
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
