"""`sdk devices remove` and `sdk devices password`: a device's entry, and the secret that belongs to it."""

from __future__ import annotations

import typer

from sdk.options.devices_options import InventoryOption, NameArgument, chosen_options
from sdk.options.shared_options import JsonOption


def register(group: typer.Typer) -> None:
    """Add the commands to the group."""
    group.command("remove")(remove)
    group.command("password")(password)


def remove(
    context: typer.Context, name: NameArgument, inventory: InventoryOption = None, as_json: JsonOption = False
) -> None:
    """Take a device out of the inventory.

    Example: sdk devices remove pi5
    """
    from devices.health.health import clear_health
    from devices.inventory.file import remove_device
    from sdk.inventory.connections import health_folder
    from sdk.inventory.lookup import open_inventory
    from sdk.output import print_json
    from sdk.settings import read_settings

    given, as_json = chosen_options(context, inventory, as_json)
    settings = read_settings()
    found = open_inventory(given, settings)
    device = found.find(name)
    remove_device(found.file, name)
    clear_health(health_folder(settings), device.address)
    if as_json:
        print_json({"inventory": str(found.file), "removed": name})
    else:
        typer.echo(f"{name} is out of {found.file}.")


def password(
    context: typer.Context, name: NameArgument, inventory: InventoryOption = None, as_json: JsonOption = False
) -> None:
    """Ask for a device's password, or its key's passphrase, and keep it in the system's keyring.

    Example: sdk devices password pi5
    """
    from devices.remote_place import PasswordSource, SshAddress
    from devices.ssh.secrets import keyring_account, write_keyring
    from sdk.inventory.connections import ask_on_terminal, connection_settings
    from sdk.inventory.lookup import open_inventory
    from sdk.output import print_json
    from sdk.settings import read_settings
    from targets.errors import DeviceError, UsageError

    given, as_json = chosen_options(context, inventory, as_json)
    settings = read_settings()
    device = open_inventory(given, settings).find(name)
    if not isinstance(device.address, SshAddress):
        raise UsageError(f"Device '{name}' is reached over ADB, which has no passwords.")
    account = keyring_account(device.address, connection_settings(settings))
    try:
        write_keyring(account, ask_on_terminal(f"Password of {name} ({account}): "))
    except DeviceError as error:
        raise DeviceError(
            f"The password of '{name}' cannot be kept: {error.message}.", next_step=error.next_step
        ) from error
    used = device.address.password_source is PasswordSource.KEYRING
    if as_json:
        print_json({"device": name, "used": used})
        return
    hint = "" if used else f' It is used once the device has password = "{PasswordSource.KEYRING.value}".'
    typer.echo(f"The password of {name} is in the keyring.{hint}")
