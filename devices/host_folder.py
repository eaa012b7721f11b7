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
        """Copy (or hard-link, on one file system) `source` into the folder."""
        target = self.path / check_name(name)
        try:
            if target.exists() and target.samefile(source):
                return
            beside = target.with_name(target.name + ".new")
            beside.unlink(missing_ok=True)
            try:
                os.link(source, beside)
            except OSError:
                shutil.copy(source, beside)
            os.replace(beside, target)
        except OSError as error:
            raise DeviceError(f"{source} cannot be copied to {target}: {error.strerror}.") from error

    def pull(self, name: str, destination: Path) -> None:
        """Copy a file of the folder to `destination`, whole or not at all."""
        beside = destination.with_name(destination.name + ".new")
        try:
            shutil.copy(self.path / check_name(name), beside)
            os.replace(beside, destination)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise DeviceError(f"{name} cannot be copied to {destination}: {error.strerror}.") from error

    def remove(self, name: str) -> None:
        """Delete one file; quiet when it is not there."""
        (self.path / check_name(name)).unlink(missing_ok=True)

    def close(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
