"""The SDK's folders and the environment of child processes; the only module that reads environment variables.

SDK_CACHE_DIR      compiled files that can be rebuilt      $XDG_CACHE_HOME/halide-autotune-sdk
SDK_CONFIG_DIR     the user's own settings                 $XDG_CONFIG_HOME/halide-autotune-sdk
SDK_PROFILE_DIR    the user's own target profiles          SDK_CONFIG_DIR/profiles
SDK_SCHEDULER      the farm's scheduler                    [farm] scheduler of sdk.toml
ANDROID_NDK_ROOT   the Android NDK                         ANDROID_NDK_HOME, ANDROID_NDK, newest of ANDROID_HOME/ndk
HEXAGON_SDK_ROOT   Qualcomm's Hexagon SDK                  none
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.hexagon.sdk import HEXAGON_SDK_VARIABLE
from halide_autotune.targets.toolchain.ndk import NDK_VARIABLES, SDK_VARIABLE

_FOLDER_NAME = "halide-autotune-sdk"
# These change what Halide compiles, what its searches find, or what an emulator runs (HL_TARGET, HL_SEED, QEMU_CPU …),
# and no run records them.
_HIDDEN_PREFIXES = ("HL_", "QEMU_")
_NDK_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,12}){0,3}", re.ASCII)


@dataclass(frozen=True)
class Settings:
    """Folders (absolute paths, which may not exist yet) and the environment of child processes.

    Attributes:
        cache_folder: files that can be rebuilt, and the reports of unexpected errors.
        config_folder: the user's own settings.
        profile_folder: the user's own target profiles.
        ndk_root: the Android NDK's folder, not checked; None if no variable names it.
        hexagon_sdk_root: the Hexagon SDK's folder, not checked; None if no variable names it.
        environment: this process's environment, without variables that would silently change a result.
        scheduler: the address of the farm's scheduler; None if the variable is not set.
    """

    cache_folder: Path
    config_folder: Path
    profile_folder: Path
    environment: Mapping[str, str] = field(hash=False, repr=False)
    ndk_root: Path | None = None
    hexagon_sdk_root: Path | None = None
    scheduler: str | None = None


def read_settings(variables: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from environment variables (this process's if none are given).

    As the XDG base directory specification asks, a relative path in an XDG variable is ignored.

    Raises:
        UsageError: there is no home folder, and no variable names a folder instead.
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
        ndk_root=_ndk_root(values),
        hexagon_sdk_root=_absolute(values[HEXAGON_SDK_VARIABLE]) if values.get(HEXAGON_SDK_VARIABLE) else None,
        scheduler=values.get("SDK_SCHEDULER") or None,
    )


def variables_set(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables above that are set, of those that the SDK reads."""
    values = os.environ if variables is None else variables
    names = ("SDK_CACHE_DIR", "SDK_CONFIG_DIR", "SDK_PROFILE_DIR", "SDK_SCHEDULER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    return {
        name: values[name] for name in (*names, *NDK_VARIABLES, SDK_VARIABLE, HEXAGON_SDK_VARIABLE) if values.get(name)
    }


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


def _ndk_root(values: Mapping[str, str]) -> Path | None:
    for variable in NDK_VARIABLES:
        if given := values.get(variable):
            return _absolute(given)
    installed = _absolute(values[SDK_VARIABLE]) / "ndk" if values.get(SDK_VARIABLE) else None
    try:
        folders = [] if installed is None else [path for path in installed.iterdir() if path.is_dir()]
    except OSError:
        return None
    versions = {path: _NDK_VERSION.fullmatch(path.name) for path in folders}
    numbers = {path: [int(part) for part in found[0].split(".")] for path, found in versions.items() if found}
    return max(numbers, key=lambda path: numbers[path], default=None)


def _absolute(text: str) -> Path:
    return Path(text).absolute()
