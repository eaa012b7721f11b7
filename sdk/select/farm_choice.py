"""Chooses the farm and this machine's certificate for it."""

from __future__ import annotations

from pathlib import Path

from autotune_loop.farm.address import FarmAddress, TlsFiles, farm_address
from sdk.project.file import find_project
from sdk.settings import Settings
from targets.errors import UsageError

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
    return farm_address(scheduler, tls_files(certificates, settings), allow_plain=allow_plain)


def tls_files(certificates: Path | None, settings: Settings) -> TlsFiles:
    """Return the files of this machine's certificate, which may not exist."""
    from autotune_loop.farm.certificate_files import CA_FILE, CERTIFICATE_FILE, KEY_FILE

    folder = certificates_folder(certificates, settings)
    return TlsFiles(folder / CA_FILE, folder / CERTIFICATE_FILE, folder / KEY_FILE)
