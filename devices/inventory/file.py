"""`devices.toml`: read and checked; devices added, updated and removed, with comments and order kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from halide_autotune.devices.inventory.fields import device_fields, read_device
from halide_autotune.devices.inventory.inventory import DeviceMachine, Fact, Inventory, InventoryDevice
from halide_autotune.targets.errors import DeviceError, UsageError
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.checks import table_of
from halide_autotune.targets.values.records import Source, record

FILE_NAME = "devices.toml"
_MOST_DEVICES = 1000
_TABLE = "devices"
_HEADER = re.compile(r"\s*\[[^\[].*\]\s*(#.*)?")
_COMMENT = re.compile(r"\s*#.*")
_Devices: TypeAlias = tuple[InventoryDevice, ...]


def load_inventory(file: Path, profile_names: Collection[str] | None = None) -> Inventory:
    """Read and check the inventory; a file that does not exist holds no devices.

    Args:
        profile_names: the target profiles there are; None leaves the devices' profiles unchecked.

    Raises:
        DeviceError: the file cannot be read, or a field is wrong.
    """
    return _parse(_read(file), file, profile_names)


def add_device(file: Path, device: InventoryDevice) -> None:
    """Write a new device behind the others; the file and its folder are made when missing.

    Raises:
        UsageError: there is a device of that name.
        DeviceError: the device or the file is wrong, or the file cannot be written.
    """

    def edit(text: str, inventory: Inventory) -> tuple[str, _Devices]:
        check_new_name(inventory, device.name)
        gap = "\n" if text.strip() else ""
        ended = text if not text or text.endswith("\n") else text + "\n"
        added = _table_text((_TABLE, device.name), device_fields(device))
        return ended + gap + added, (*inventory.devices, device)

    _edit(file, edit)


def check_new_name(inventory: Inventory, name: str) -> None:
    """Check that no device is called so.

    Raises:
        UsageError: one is.
    """
    if any(device.name == name for device in inventory.devices):
        raise UsageError(
            f"{inventory.file} already has a device '{name}'.",
            next_step=f"`sdk devices probe {name} --write` updates it, `sdk devices remove {name}` takes it out.",
        )


def update_device(file: Path, name: str, machine: DeviceMachine, probed: tuple[tuple[str, Fact], ...]) -> None:
    """Write what was probed into a device's tables `machine` and `probed`; its other keys stay as they are.

    Raises:
        UsageError: there is no such device.
        DeviceError: the file is wrong, cannot be edited or cannot be written.
    """

    def edit(text: str, inventory: Inventory) -> tuple[str, _Devices]:
        updated = replace(inventory.find(name), machine=machine, probed=probed)
        fields: Mapping[str, Any] = device_fields(updated)
        blocks = _blocks(text)
        for table in ("machine", "probed"):
            _set_table(blocks, (_TABLE, name, table), fields.get(table, {}))
        return _joined(blocks), tuple(updated if device.name == name else device for device in inventory.devices)

    _edit(file, edit)


def remove_device(file: Path, name: str) -> None:
    """Take a device out, with the comment right above it.

    Raises:
        UsageError: there is no such device.
        DeviceError: the file is wrong, cannot be edited or cannot be written.
    """

    def edit(text: str, inventory: Inventory) -> tuple[str, _Devices]:
        inventory.find(name)
        blocks = [block for block in _blocks(text) if block.path[:2] != (_TABLE, name)]
        return _joined(blocks), tuple(device for device in inventory.devices if device.name != name)

    _edit(file, edit)


@dataclass
class _Block:
    """A table's header with the comment lines right above it, and all lines up to the next block."""

    path: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class _InventoryFile:
    devices: Annotated[Mapping[str, object], table_of(lambda table: table, most=_MOST_DEVICES)] = field(
        default_factory=dict
    )


def _parse(text: str, file: Path, profile_names: Collection[str] | None) -> Inventory:
    source = Source(file, DeviceError)
    entries = source.check(record(_InventoryFile), source.toml(text)).devices
    devices = tuple(read_device(name, entry, str(file), profile_names) for name, entry in entries.items())
    _check_slot_names(devices, source)
    return Inventory(file, devices)


def _check_slot_names(devices: _Devices, source: Source) -> None:
    names = {device.name for device in devices}
    for device in devices:
        for slot_name, _ in device.places():
            if slot_name != device.name and slot_name in names:
                raise source.refuse(f"device '{slot_name}' has the name of a slot of '{device.name}'.")


def _read(file: Path) -> str:
    try:
        return Source(file, DeviceError).read(file)
    except FileNotFoundError:
        return ""


def _edit(file: Path, edit: Callable[[str, Inventory], tuple[str, _Devices]]) -> None:
    """Replace the file by what `edit` makes of it, provided that it reads as the inventory it is meant to be."""
    file = file.resolve()  # where the file is a link, its target is replaced
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _locked(file.with_name(f".{file.name}.lock")):
            text = _read(file)
            edited, expected = edit(text, _parse(text, file, None))
            if _parse(edited, file, None).devices != expected:
                raise DeviceError(
                    f"{file} cannot be edited automatically without losing content.",
                    next_step="Edit it by hand; each device is a table [devices.NAME].",
                )
            mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
            write_atomically(file, edited.encode(), mode)
    except OSError as error:
        raise DeviceError(
            f"The inventory {file} cannot be written ({error.strerror}).", next_step="Choose another --inventory."
        ) from error


@contextlib.contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Hold the lock file, and leave none behind."""
    while True:
        with lock.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if _is_at(held.fileno(), lock):
                try:
                    yield
                finally:
                    lock.unlink(missing_ok=True)
                return


def _is_at(held: int, lock: Path) -> bool:
    """Say whether the file that was locked is still the one at its path: whoever held it before has removed it."""
    try:
        return os.path.samestat(os.fstat(held), lock.stat())
    except FileNotFoundError:
        return False


def _blocks(text: str) -> list[_Block]:
    """Split the text at its tables.

    tomlkit counts a comment above a table to the table before it, which would lose or misplace it. A header-like
    line inside a text of several lines is taken for a header; `_edit` refuses what comes of that.
    """
    blocks = [_Block((), "")]
    pending: list[str] = []  # comment lines that belong to the next block if a header follows at once
    for line in text.splitlines(keepends=True):
        if _HEADER.fullmatch(line.rstrip("\r\n")) and (path := _header_path(line)):
            blocks.append(_Block(path, "".join(pending) + line))
            pending = []
        elif _COMMENT.fullmatch(line.rstrip("\r\n")):
            pending.append(line)
        else:
            blocks[-1].text += "".join(pending) + line
            pending = []
    blocks[-1].text += "".join(pending)
    return blocks


def _header_path(line: str) -> tuple[str, ...]:
    try:
        table: object = tomllib.loads(line)
    except ValueError:
        return ()
    path: list[str] = []
    while isinstance(table, Mapping) and table:
        key, table = next(iter(table.items()))
        path.append(key)
    return tuple(path)


def _joined(blocks: list[_Block]) -> str:
    return "".join(block.text for block in blocks)


def _set_table(blocks: list[_Block], path: tuple[str, ...], fields: Mapping[str, Any]) -> None:
    """Make the table at `path` hold `fields`: edited where it is, else put behind the device's other tables."""
    import tomlkit

    block = next((block for block in blocks if block.path == path), None)
    if block is not None:
        body = block.text.rstrip()
        document = tomlkit.parse(body + "\n")
        table: Any = document
        for key in path:
            table = table[key]
        for key in [key for key in table if key not in fields]:
            del table[key]
        for key, value in fields.items():
            if table.get(key) != value:
                table[key] = value
        block.text = tomlkit.dumps(document).rstrip() + block.text[len(body) :]
    elif fields:
        last = max(index for index, block in enumerate(blocks) if block.path[:2] == path[:2])
        body = blocks[last].text.rstrip()
        tail = blocks[last].text[len(body) :] or "\n"
        blocks[last].text = body + "\n\n"
        blocks.insert(last + 1, _Block(path, _table_text(path, fields).rstrip() + tail))


def _table_text(path: tuple[str, ...], fields: Mapping[str, Any]) -> str:
    import tomlkit

    table = dict(fields)
    if "environment" in table:
        table["environment"] = tomlkit.inline_table()
        table["environment"].update(fields["environment"])
    for key in reversed(path):
        table = {key: table}
    return tomlkit.dumps(table)
