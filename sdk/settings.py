"""Where the SDK keeps its files, and what child processes see: the only reader of environment variables.

SDK_CACHE_DIR      compiled files that can be made again   $XDG_CACHE_HOME/halide-autotune-sdk
SDK_CONFIG_DIR     the user's own settings                 $XDG_CONFIG_HOME/halide-autotune-sdk
SDK_PROFILE_DIR    the user's own target profiles          SDK_CONFIG_DIR/profiles
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from targets.errors import UsageError

_FOLDER_NAME = "halide-autotune-sdk"
# These change what Halide compiles, what its searches find, or what an emulator runs, behind the back of a
# run that records everything it was asked (HL_TARGET, HL_SEED, HL_RANDOMIZE_WEIGHTS, QEMU_CPU …).
_HIDDEN_PREFIXES = ("HL_", "QEMU_")


@dataclass(frozen=True)
class Settings:
    """Folders (absolute; they need not exist yet) and the environment for child processes.

    Attributes:
        cache_folder: files that can be made again, and the reports of unexpected errors.
        config_folder: the user's own settings.
        profile_folder: the user's own target profiles.
        environment: this process's environment, without what would silently change a result.
    """

    cache_folder: Path
    config_folder: Path
    profile_folder: Path
    environment: Mapping[str, str] = field(hash=False, repr=False)


def read_settings(variables: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from environment variables (this process's where none are given).

    By the XDG base directory specification, a relative path in an XDG variable is passed over.

    Raises:
        UsageError: there is no home folder and no variable that says where to go instead.
    """
    values = os.environ if variables is None else variables
    cache_folder = _folder(values, "SDK_CACHE_DIR", "XDG_CACHE_HOME", ".cache")
    config_folder = _folder(values, "SDK_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")
    profile_folder = values.get("SDK_PROFILE_DIR")
    return Settings(
        cache_folder=cache_folder,
        config_folder=config_folder,
        profile_folder=_absolute(profile_folder) if profile_folder else config_folder / "profiles",
        environment={key: value for key, value in values.items() if not key.startswith(_HIDDEN_PREFIXES)},
    )


def export_variables(variables: Mapping[str, str]) -> None:
    """Set environment variables of this process, for a library that reads nothing else."""
    os.environ.update(variables)


def _folder(values: Mapping[str, str], own_variable: str, xdg_variable: str, below_home: str) -> Path:
    if own := values.get(own_variable):
        return _absolute(own)
    xdg = Path(values.get(xdg_variable, ""))
    if xdg.is_absolute():
        return xdg / _FOLDER_NAME
    try:
        home = Path(values["HOME"]) if values.get("HOME") else Path.home()
    except RuntimeError as error:
        raise UsageError("This user has no home folder.", next_step=f"Set {own_variable} to a folder.") from error
    return home.absolute() / below_home / _FOLDER_NAME


def _absolute(text: str) -> Path:
    return Path(text).absolute()
