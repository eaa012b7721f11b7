"""Chooses the farm and this machine's certificate for it."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.autotune_loop.farm.address import FarmAddress, farm_address
from halide_autotune.sdk.project.file import find_project
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import UsageError

_FOLDER_NAME = "farm"


def certificates_folder(given: Path | None, settings: Settings) -> Path:
    """Return the folder of this machine's certificates: the given one, else `farm` in the user's settings."""
    return (given or settings.config_folder / _FOLDER_NAME).absolute()


def named_scheduler(given: str | None, settings: Settings) -> str | None:
    """Return the given address, else that of SDK_SCHEDULER, else that of `sdk.toml`; None if there is none.

    Raises:
        UsageError: `sdk.toml` is wrong.
    """
    return given or settings.scheduler or find_project(Path.cwd()).farm.scheduler


def choose_farm(
    given: str | None, certificates: Path | None, settings: Settings, *, allow_plain: bool = False
) -> FarmAddress:
    """Return the farm that a command uses.

    Raises:
        UsageError: none is named, or it is not an address.
    """
    scheduler = named_scheduler(given, settings)
    if scheduler is None:
        raise UsageError(
            "No scheduler was named.",
            next_step="Give --scheduler tls://HOST:8786, set SDK_SCHEDULER, or write [farm] scheduler into sdk.toml.",
        )
    return farm_address(scheduler, certificates_folder(certificates, settings), allow_plain=allow_plain)
