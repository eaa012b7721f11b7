"""The fields of a device in `devices.toml`: which there are, what each may hold, and the device they make."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from devices.inventory.address import address_text, parse_adb_address, parse_ssh_address
from devices.inventory.inventory import DeviceMachine, InventoryDevice
from devices.inventory.values import (
    Unfit,
    absolute_device_folder,
    core_list,
    device_folder,
    environment,
    facts,
    jump_host,
    kind_of,
    list_of,
    one_line,
    one_of,
    password_source,
    table_of_anything,
    true_or_false,
    whole_number,
    word,
)
from devices.remote_place import AdbAddress, PasswordSource, SshAddress
from targets.errors import DeviceError, UsageError
from targets.values.checks import nearest

Fields = Mapping[str, object]

TRANSPORTS = ("ssh", "adb")
_MOST_SLOTS = 64
_RESERVED_NAMES = ("local", "qemu", "hexagon-sim")
_DEVICE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def read_device(name: str, table: object, where: str, profile_names: Collection[str] | None) -> InventoryDevice:
    """Return the device of one table `[devices.NAME]`.

    Args:
        where: the file, for messages.
        profile_names: the profiles there are; None leaves the profile's name unchecked.

    Raises:
        DeviceError: naming the file, the device, the key, what was expected and the nearest valid name.
    """
    check_device_name(name, where)
    where = f"{where}: device '{name}'"
    if not isinstance(table, Mapping):
        raise DeviceError(f"{where} must be a table ([devices.{name}]), not {kind_of(table)}.")
    fields = _checked(table, _CHECKS, "", where)
    for key in ("profile", "transport"):
        if key not in fields:
            raise DeviceError(f"{where}: the key '{key}' is missing; expected {_EXAMPLES[key]}.")
    profile = str(fields["profile"])
    if profile_names is not None and profile not in profile_names:
        close = nearest(profile, profile_names)
        hint = f"; the nearest is '{close}'" if close else ""
        raise DeviceError(
            f"{where}: key 'profile': there is no target profile '{profile}'{hint}.",
            next_step="`sdk targets` lists them.",
        )
    device = _make_device(name, fields, where)
    _check_shares(device, where)
    return device


def check_device_name(name: str, where: str) -> None:
    """Check the name of a device.

    Raises:
        DeviceError: it has other characters, or means something else.
    """
    if not _DEVICE_NAME.fullmatch(name):
        raise DeviceError(
            f"{where}: {name[:80]!r} is not a device's name; expected at most 64 letters, digits, '.', '_' and '-'."
        )
    if name in _RESERVED_NAMES:
        raise DeviceError(f"{where}: a device cannot be called '{name}', which means this machine.")


def device_fields(device: InventoryDevice) -> dict[str, object]:
    """Return the table that `read_device` makes this device of, in the order of the documentation."""
    address = device.address
    fields: dict[str, object] = {
        "profile": device.profile_name,
        "transport": device.transport,
        "address": address_text(address),
    }
    if isinstance(address, AdbAddress):
        fields["serial"] = address.serial
    else:
        fields["identity_file"] = None if address.identity_file is None else str(address.identity_file)
        fields["jump"] = list(address.jump)
        if address.password_source is not PasswordSource.NONE:
            fields["password"] = address.password_source.value
    fields |= {
        "labels": list(device.labels),
        "slots": None if device.slots == 1 else device.slots,
        "cores": list(device.cores),
        "environment": dict(device.environment),
        "folder": device.folder,
        "lease_folder": device.lease_folder,
        "emulated": device.emulated or None,
        "performance_mode": None if device.performance_mode else False,
        "machine": machine_fields(device.machine),
        "probed": {key: list(fact) if isinstance(fact, tuple) else fact for key, fact in device.probed},
    }
    return {key: value for key, value in fields.items() if value not in (None, [], {})}


def machine_fields(machine: DeviceMachine) -> dict[str, int]:
    """Return the table `machine`; what is not known is left out."""
    found = {key: getattr(machine, key) for key in _MACHINE_CHECKS}
    return {key: value for key, value in found.items() if value is not None}


def parse_cores(text: str) -> tuple[int, ...]:
    """Return the cores of a list such as '2-3,6'.

    Raises:
        UsageError: it is no such list, or names a core twice.
    """
    try:
        return core_list(text)
    except Unfit as error:
        raise UsageError(f"{text[:80]!r} is not a list of cores: it must be {error}.") from error


def _checked(table: Fields, checks: Mapping[str, Callable[[object], object]], prefix: str, where: str) -> Fields:
    checked: dict[str, object] = {}
    for key, value in table.items():
        if key not in checks:
            raise _unknown_key(key, value, checks, prefix, where)
        try:
            checked[key] = checks[key](value)
        except Unfit as error:
            raise DeviceError(f"{where}: key '{prefix}{key}' must be {error}.") from error
        except UsageError as error:
            raise DeviceError(f"{where}: key '{prefix}{key}': {error.message}") from error
    return checked


def _unknown_key(key: str, value: object, checks: Collection[str], prefix: str, where: str) -> DeviceError:
    shown = key[:80] if key.isprintable() else ascii(key[:80])
    if isinstance(value, Mapping) and ("transport" in value or "profile" in value):
        return DeviceError(f'{where}: a device\'s name with a dot stands in quotes: [devices."….{shown}"].')
    close = nearest(key[:80], checks)
    hint = f"the nearest is '{prefix}{close}'" if close else f"expected one of {', '.join(sorted(checks))}"
    return DeviceError(f"{where}: '{prefix}{shown}' is not a key of a device; {hint}.")


def _make_device(name: str, fields: Fields, where: str) -> InventoryDevice:
    return InventoryDevice(
        name=name,
        profile_name=str(fields["profile"]),
        address=_ssh_address(fields, where) if fields["transport"] == "ssh" else _adb_address(fields, where),
        labels=_tuple_of(fields, "labels"),
        slots=_number_of(fields, "slots") or 1,
        cores=_tuple_of(fields, "cores"),
        environment=_tuple_of(fields, "environment"),
        folder=_text_of(fields, "folder"),
        lease_folder=_text_of(fields, "lease_folder"),
        emulated=fields.get("emulated") is True,
        performance_mode=fields.get("performance_mode") is not False,
        machine=_machine_of(fields, where),
        probed=_tuple_of(fields, "probed"),
    )


def _ssh_address(fields: Fields, where: str) -> SshAddress:
    _refuse_foreign(fields, ("serial",), "adb", where)
    text = _text_of(fields, "address")
    if text is None:
        raise DeviceError(f"{where}: the key 'address' is missing; expected {_EXAMPLES['address']}.")
    try:
        address = parse_ssh_address(text)
    except UsageError as error:
        raise DeviceError(f"{where}: key 'address': {error.message}") from error
    identity = _text_of(fields, "identity_file")
    return SshAddress(
        host=address.host,
        port=address.port,
        user=address.user,
        identity_file=None if identity is None else Path(identity),
        jump=_tuple_of(fields, "jump"),
        password_source=PasswordSource(fields.get("password", PasswordSource.NONE.value)),
    )


def _adb_address(fields: Fields, where: str) -> AdbAddress:
    _refuse_foreign(fields, ("identity_file", "jump", "password"), "ssh", where)
    serial = _text_of(fields, "serial")
    folder = _text_of(fields, "folder")
    if folder is not None and not folder.startswith("/"):
        raise DeviceError(f"{where}: key 'folder' must be an absolute path on an Android device, not '{folder}'.")
    text = _text_of(fields, "address")
    if text is None:
        return AdbAddress(serial=serial)
    try:
        address = parse_adb_address(text)
    except UsageError as error:
        raise DeviceError(f"{where}: key 'address': {error.message}") from error
    return AdbAddress(host=address.host, port=address.port, serial=serial)


def _refuse_foreign(fields: Fields, keys: tuple[str, ...], transport: str, where: str) -> None:
    for key in keys:
        if key in fields:
            raise DeviceError(f"{where}: key '{key}' belongs to transport \"{transport}\" alone.")


def _check_shares(device: InventoryDevice, where: str) -> None:
    if device.slots == 1:
        return
    if not device.cores:
        raise DeviceError(
            f"{where}: slots = {device.slots} wants the key 'cores', so that each slot has cores of its own."
        )
    if len(device.cores) % device.slots:
        raise DeviceError(
            f"{where}: key 'slots': {len(device.cores)} cores cannot be shared equally between {device.slots} slots."
        )


def _machine_of(fields: Fields, where: str) -> DeviceMachine:
    table = fields.get("machine", {})
    checked = _checked(table if isinstance(table, Mapping) else {}, _MACHINE_CHECKS, "machine.", where)
    return DeviceMachine(**{key: value for key, value in checked.items() if isinstance(value, int)})


def _text_of(fields: Fields, key: str) -> str | None:
    value = fields.get(key)
    return value if isinstance(value, str) else None


def _number_of(fields: Fields, key: str) -> int | None:
    value = fields.get(key)
    return value if isinstance(value, int) else None


# The checks below make the tuples; what is in them is theirs to say.
def _tuple_of(fields: Fields, key: str) -> tuple[Any, ...]:
    value = fields.get(key)
    return value if isinstance(value, tuple) else ()


_CACHE_BYTES = whole_number(1, 2**40)
_MACHINE_CHECKS: Mapping[str, Callable[[object], object]] = {
    "parallelism": whole_number(1, 65536),
    "l1_data_cache_bytes": _CACHE_BYTES,
    "l2_cache_bytes": _CACHE_BYTES,
    "last_level_cache_bytes": _CACHE_BYTES,
}
_CHECKS: Mapping[str, Callable[[object], object]] = {
    "profile": word,
    "transport": one_of(TRANSPORTS),
    "address": one_line,
    "serial": word,
    "identity_file": one_line,
    "jump": list_of(jump_host),
    "password": password_source,
    "labels": list_of(word),
    "slots": whole_number(1, _MOST_SLOTS),
    "cores": core_list,
    "environment": environment,
    "folder": device_folder,
    "lease_folder": absolute_device_folder,
    "emulated": true_or_false,
    "performance_mode": true_or_false,
    "machine": table_of_anything,
    "probed": facts,
}
_EXAMPLES = {
    "profile": 'profile = "arm64"; `sdk targets` lists them',
    "transport": f"one of {', '.join(TRANSPORTS)}",
    "address": "[user@]host[:port], or a Host of ~/.ssh/config",
}
