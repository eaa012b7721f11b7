"""Finds the `devices.toml` that applies, and reads it."""

from __future__ import annotations

import os
from pathlib import Path

from halide_autotune.devices.inventory.file import FILE_NAME, load_inventory
from halide_autotune.devices.inventory.inventory import Inventory
from halide_autotune.sdk.project.file import find_project
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.profile.loader import profile_names


def find_inventory_file(given: Path | None, settings: Settings) -> Path:
    """Return the file of the devices, which may not exist.

    It is the given one, else the one that `sdk.toml` names, else the nearest `devices.toml` in the current folder or a
    parent, else the user's own.

    Raises:
        UsageError: `sdk.toml` is wrong.
    """
    if named := _named_file(given):
        return named
    here = Path.cwd()
    files = (folder / FILE_NAME for folder in (here, *here.parents))
    return next((file for file in files if os.path.isfile(file)), settings.config_folder / FILE_NAME)


def _named_file(given: Path | None) -> Path | None:
    if given is not None:
        return given.absolute()
    project = find_project(Path.cwd())
    return None if project.inventory is None else (project.folder / project.inventory).absolute()


def open_inventory(given: Path | None, settings: Settings) -> Inventory:
    """Return the devices for the current folder; none if there is no file.

    Raises:
        UsageError: the command line or `sdk.toml` names a file that does not exist; or `sdk.toml` is wrong.
        DeviceError: the file is wrong.
        ProfileError: the user's profiles cannot be listed.
    """
    file = find_inventory_file(given, settings)
    if not os.path.exists(file) and _named_file(given):
        raise UsageError(
            f"There is no inventory {file}.", next_step="Create it with `sdk devices add`, or give another path."
        )
    return load_inventory(file, profile_names(settings.profile_folder))
