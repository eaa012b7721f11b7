"""A device's folder on this machine, shared by the transports that run here."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from devices.file_name import check_name
from targets.errors import DeviceError


class HostFolder:
    """A temporary folder for one transport.

    Raises:
        DeviceError: the disk is full or a file cannot be read or written.
    """

    def __init__(self, parent: Path) -> None:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix="device-", dir=parent))
        except OSError as error:
            raise DeviceError(f"{parent}: no folder can be made there: {error.strerror}.") from error

    def push(self, source: Path, name: str) -> None:
        """Copy `source` into the folder; never a link, since what runs there may write to it."""
        target = self.path / check_name(name)
        try:
            _copy(source, target)
        except OSError as error:
            raise DeviceError(f"{source} cannot be copied to {target}: {error.strerror}.") from error

    def pull(self, name: str, destination: Path) -> None:
        """Copy a file of the folder to `destination`, whole or not at all."""
        try:
            _copy(self.path / check_name(name), destination)
        except OSError as error:
            raise DeviceError(f"{name} cannot be copied to {destination}: {error.strerror}.") from error

    def remove(self, name: str) -> None:
        """Delete one file; quiet when it is not there."""
        (self.path / check_name(name)).unlink(missing_ok=True)

    def close(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    # No file of a device has a leading dot, so the copy under way is in nobody's way.
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copy(source, beside)
        os.replace(beside, target)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
