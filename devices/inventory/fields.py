"""The table of a device in `devices.toml`: which keys there are, what each may hold, and the device they make."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated

from halide_autotune.devices.device_link import TRANSPORTS
from halide_autotune.devices.inventory.address import (
    address_text,
    parse_adb_address,
    parse_ssh_address,
    parse_url_address,
)
from halide_autotune.devices.inventory.inventory import RESERVED_NAMES, DeviceMachine, Fact, InventoryDevice
from halide_autotune.devices.remote_place import (
    AdbAddress,
    Address,
    PasswordSource,
    RemotePlace,
    SshAddress,
    UrlAddress,
)
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.values.checks import (
    Unfit,
    any_text,
    kind_of,
    list_of,
    matching,
    nearest_hint,
    one_line,
    plain_value,
    shown,
    table_of,
    whole_number,
    word,
)
from halide_autotune.targets.values.records import Example, Source, plain, record

_HIGHEST_CORE = 4095
_MOST_ITEMS = 64
_MOST_SLOTS = 64
_LONGEST_TEXT_CHARACTERS = 1024
_DEVICE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CORE_RANGES = re.compile(r"[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*", re.ASCII)
# What a shell on the device takes as it is.
_FOLDER = r"(?!.*(^|/)\.\.(/|$))(?=.*[^/.])[A-Za-z0-9_/.][A-Za-z0-9_@%+=:,./-]{0,199}"
_FOLDER_WORDS = "of at most 200 letters, digits and _ @ % + = : , . / - without '..' (it reaches the device's shell)"


def _ssh_address(value: object) -> SshAddress:
    return parse_ssh_address(one_line(value))


def _adb_address(value: object) -> AdbAddress:
    return parse_adb_address(one_line(value))


def _url_address(value: object) -> UrlAddress:
    return parse_url_address(one_line(value))


def _jump_host(value: object) -> str:
    _ssh_address(value)
    return str(value)


def _password_source(value: object) -> PasswordSource:
    """Where a password comes from. What else stands there may be one, and is not shown."""
    sources = {source.value: source for source in PasswordSource if source is not PasswordSource.NONE}
    if not isinstance(value, str) or value not in sources:
        raise Unfit(f"one of {', '.join(sources)}: where the password comes from, never itself")
    return sources[value]


def _cores(value: object) -> tuple[int, ...]:
    """Core numbers, as a list or as text such as '2-3,6'; none twice."""
    listed: object = _cores_of_text(value) if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise Unfit('a list such as [2, 3] or "2-3,6"', kind_of(value))
    if not listed:
        raise Unfit("a list of at least one core")
    return list_of(whole_number(0, _HIGHEST_CORE), most=_HIGHEST_CORE + 1, distinct=True)(listed)


def _cores_of_text(text: str) -> list[int]:
    if len(text) > _LONGEST_TEXT_CHARACTERS or not _CORE_RANGES.fullmatch(text.replace(" ", "")):
        raise Unfit('a list such as [2, 3] or "2-3,6"', shown(text))
    cores: list[int] = []
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        span = range(int(first), int(last or first) + 1)
        if not span or span[-1] > _HIGHEST_CORE:
            raise Unfit(f"ranges from a lower to a higher core, at most {_HIGHEST_CORE}; '{part}' is none")
        cores += span
    return cores


def _printable(value: object) -> str:
    text = any_text(value)
    if not text.isprintable() or len(text) > _LONGEST_TEXT_CHARACTERS:
        raise Unfit(f"a string of at most {_LONGEST_TEXT_CHARACTERS} printable characters")
    return text


def _environment(value: object) -> tuple[tuple[str, str], ...]:
    """Environment variables, in the order written."""
    names = matching(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "a variable's name such as OMP_NUM_THREADS")
    return tuple(table_of(_printable, names=names, most=_MOST_ITEMS)(value).items())


def _facts(value: object) -> tuple[tuple[str, Fact], ...]:
    """What was probed, for people: numbers, short texts and lists of them."""
    return tuple(table_of(_fact, names=one_line, most=_MOST_ITEMS)(value).items())


def _fact(value: object) -> Fact:
    return list_of(_single_fact)(value) if isinstance(value, list) else _single_fact(value)


def _single_fact(value: object) -> bool | int | float | str:
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if type(value) is int:
        return whole_number(-(2**63) + 1, 2**63 - 1)(value)
    return _printable(value) if isinstance(value, str) else plain_value(value)


@dataclass(frozen=True, kw_only=True)
class _AddressKeys:
    address: Annotated[str | None, one_line] = None
    serial: Annotated[str | None, word] = None
    identity_file: Path | None = None
    jump: Annotated[tuple[str, ...], list_of(_jump_host, most=_MOST_ITEMS, distinct=True)] = ()
    password: Annotated[PasswordSource, _password_source] = PasswordSource.NONE


@dataclass(frozen=True, kw_only=True)
class _DeviceTable(_AddressKeys):
    profile: Annotated[str, word, Example('profile = "arm64"; `sdk targets` lists them')]
    transport: Annotated[str, TRANSPORTS.check_name]
    labels: Annotated[tuple[str, ...], list_of(word, most=_MOST_ITEMS, distinct=True)] = ()
    slots: Annotated[int, whole_number(1, _MOST_SLOTS)] = 1
    cores: Annotated[tuple[int, ...], _cores] = ()
    environment: Annotated[tuple[tuple[str, str], ...], _environment] = ()
    folder: Annotated[str | None, matching(_FOLDER, f"a path {_FOLDER_WORDS}")] = None
    lease_folder: Annotated[str | None, matching(f"(?=/){_FOLDER}", f"an absolute path {_FOLDER_WORDS}")] = None
    emulated: bool = False
    performance_mode: bool = True
    machine: DeviceMachine = field(default_factory=DeviceMachine)
    probed: Annotated[tuple[tuple[str, Fact], ...], _facts] = ()


def read_device(name: str, table: object, where: str, profile_names: Collection[str] | None) -> InventoryDevice:
    """Return the device of one table `[devices.NAME]`.

    Args:
        where: the file, for messages.
        profile_names: the profiles there are; None leaves the profile's name unchecked.

    Raises:
        DeviceError: naming the file, the device, the key, what was expected and the nearest valid name.
    """
    check_device_name(name, where)
    source = Source(f"{where}: device '{name}'", DeviceError)
    _refuse_split_name(table, source)
    entry = source.check(record(_DeviceTable), _with_transport(table))
    if profile_names is not None and entry.profile not in profile_names:
        raise source.refuse(
            f"key 'profile': there is no target profile '{entry.profile}'{nearest_hint(entry.profile, profile_names)}.",
            next_step="`sdk targets` lists them.",
        )
    _check_shares(entry, source)
    place = RemotePlace(
        address=_address_of(entry, source),
        folder=entry.folder,
        lease_folder=entry.lease_folder,
        cores=entry.cores,
        environment=entry.environment,
        performance_mode=entry.performance_mode,
    )
    return InventoryDevice(
        name, entry.profile, place, entry.labels, entry.slots, entry.emulated, entry.machine, entry.probed
    )


def check_device_name(name: str, where: str) -> None:
    """Check the name of a device.

    Raises:
        DeviceError: it has other characters, or means something else.
    """
    if not _DEVICE_NAME.fullmatch(name):
        raise DeviceError(
            f"{where}: {name[:80]!r} is not a device's name; expected at most 64 letters, digits, '.', '_' and '-'."
        )
    if name in RESERVED_NAMES:
        raise DeviceError(f"{where}: a device cannot be called '{name}', which means this machine.")


def device_fields(device: InventoryDevice) -> dict[str, object]:
    """Return the table that `read_device` makes this device of, in the order of the documentation."""
    place, address = device.place, device.place.address
    login: dict[str, object] = {}
    if isinstance(address, AdbAddress):
        login = {"serial": address.serial}
    elif isinstance(address, SshAddress):
        password = address.password_source
        login = {"identity_file": address.identity_file, "jump": address.jump, "password": password}
    table = {
        "profile": device.profile_name,
        "transport": device.transport,
        "address": address_text(address),
        **login,
        "labels": device.labels,
        "slots": device.slots,
        "cores": place.cores,
        "environment": dict(place.environment),
        "folder": place.folder,
        "lease_folder": place.lease_folder,
        "emulated": device.emulated,
        "performance_mode": place.performance_mode,
        "machine": device.machine.known(),
        "probed": dict(device.probed),
    }
    usual = {"password": "none", "slots": 1, "emulated": False, "performance_mode": True}
    return {key: value for key, value in plain(table).items() if value not in (None, [], {}, usual.get(key))}


def _refuse_split_name(table: object, source: Source) -> None:
    known = {each.name for each in fields(_DeviceTable)}
    for key, value in table.items() if isinstance(table, Mapping) else ():
        if key not in known and isinstance(value, Mapping) and ("transport" in value or "profile" in value):
            raise source.refuse(f'a device\'s name with a dot stands in quotes: [devices."….{key[:80]}"].')


def _with_transport(table: object) -> object:
    """The table with its transport: a URL names it by itself."""
    address = table.get("address") if isinstance(table, Mapping) else None
    if not isinstance(table, Mapping) or "transport" in table or not isinstance(address, str) or "://" not in address:
        return table
    return {**table, "transport": address.partition("://")[0]}


def _address_of(entry: _DeviceTable, source: Source) -> Address:
    if entry.transport == "ssh":
        return _ssh_address_of(entry, source)
    if entry.transport == "adb":
        return _adb_address_of(entry, source)
    for key in ("serial", "identity_file", "jump", "password"):
        if getattr(entry, key) != getattr(_DeviceTable, key):
            raise source.refuse(f"key '{key}' belongs to another transport.")
    if entry.address is None:
        raise source.refuse(f"the key 'address' is missing; expected {entry.transport}://…")
    address = source.check(_url_address, entry.address, key="address")
    if address.transport != entry.transport:
        raise source.refuse(f"key 'address' must be a URL that starts with {entry.transport}://.")
    return address


def _ssh_address_of(entry: _DeviceTable, source: Source) -> SshAddress:
    if entry.serial is not None:
        raise source.refuse("key 'serial' belongs to transport \"adb\" alone.")
    if entry.address is None:
        raise source.refuse("the key 'address' is missing; expected [user@]host[:port], or a Host of ~/.ssh/config.")
    address = source.check(_ssh_address, entry.address, key="address")
    return replace(address, identity_file=entry.identity_file, jump=entry.jump, password_source=entry.password)


def _adb_address_of(entry: _DeviceTable, source: Source) -> AdbAddress:
    for key in ("identity_file", "jump", "password"):
        if getattr(entry, key) != getattr(_DeviceTable, key):
            raise source.refuse(f"key '{key}' belongs to transport \"ssh\" alone.")
    if entry.folder is not None and not entry.folder.startswith("/"):
        raise source.refuse(f"key 'folder' must be an absolute path on an Android device, not '{entry.folder}'.")
    if entry.address is None:
        return AdbAddress(serial=entry.serial)
    return replace(source.check(_adb_address, entry.address, key="address"), serial=entry.serial)


def _check_shares(entry: _DeviceTable, source: Source) -> None:
    if entry.slots > 1 and not entry.cores:
        raise source.refuse(f"slots = {entry.slots} needs the key 'cores', so that each slot has cores of its own.")
    if len(entry.cores) % entry.slots:
        raise source.refuse(
            f"key 'slots': {len(entry.cores)} cores cannot be shared equally between {entry.slots} slots."
        )
