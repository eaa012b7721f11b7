"""Finds the `devices.toml` that applies, and reads it."""

from __future__ import annotations

import os
from pathlib import Path

from devices.inventory.file import FILE_NAME, load_inventory
from devices.inventory.inventory import Inventory
from sdk.project.file import Project, find_project
from sdk.settings import Settings
from targets.errors import UsageError
from targets.profile.loader import profile_names

_ADD_ONE = "Create it with `sdk devices add`, or give another path."


def inventory_file(given: Path | None, project: Project, start: Path, config_folder: Path) -> Path:
    """Return the file of the devices, which may not exist.

    It is the given one, else the one that `sdk.toml` names, else the nearest `devices.toml` in `start` or a parent,
    else the user's own.
    """
    if given is not None:
        return given.absolute()
    if project.inventory is not None:
        return (project.folder / project.inventory).absolute()
    for folder in (start, *start.parents):
        if os.path.isfile(folder / FILE_NAME):
            return folder / FILE_NAME
    return config_folder / FILE_NAME


def find_inventory_file(given: Path | None, settings: Settings) -> Path:
    """Return the file for a command started in the current folder.

    Raises:
        UsageError: `sdk.toml` is wrong.
    """
    here = Path.cwd()
    return inventory_file(given, find_project(here), here, settings.config_folder)


def open_inventory(given: Path | None, settings: Settings) -> Inventory:
    """Return the devices for the current folder; none if there is no file.

    Raises:
        UsageError: the command line or `sdk.toml` names a file that does not exist; or `sdk.toml` is wrong.
        DeviceError: the file is wrong.
        ProfileError: the user's profiles cannot be listed.
    """
    here = Path.cwd()
    project = find_project(here)
    file = inventory_file(given, project, here, settings.config_folder)
    named = given is not None or project.inventory is not None
    if named and not os.path.exists(file):
        raise UsageError(f"There is no inventory {file}.", next_step=_ADD_ONE)
    return load_inventory(file, profile_names(settings.profile_folder))
