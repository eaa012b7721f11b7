"""Files to a device over SFTP."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.ssh.connection import SshConnection
from targets.errors import DeviceError

# With its header, a write fits one packet of the channel.
_CHUNK_BYTES = 32_000
_EXECUTABLE = 0o700


class SshFiles:
    """The SFTP session of one connection.

    Args:
        connection: to the device.
        place: the device, for what is said.
        silence_s: how long the device may acknowledge nothing.

    Raises:
        DeviceTrouble: the server has no SFTP (BROKEN).
        Exception: whatever paramiko and sockets raise when the connection fails.
    """

    def __init__(self, connection: SshConnection, place: str, silence_s: float) -> None:
        from paramiko import SFTPClient, SSHException
        from paramiko.sftp import SFTPError

        self._place = place
        channel = connection.open_session(silence_s)
        channel.settimeout(silence_s)
        try:
            channel.invoke_subsystem("sftp")
            self._client = SFTPClient(channel)
        except TimeoutError:
            raise
        except (SSHException, SFTPError, OSError) as error:
            # A program that ends at once may have closed the channel before the first word to it.
            channel.close()
            if connection.ends_soon():
                raise
            if isinstance(error, SFTPError):
                message = f"{place} mixes other output into SFTP."
                next_step = "Let the user's .bashrc (or similar) print nothing without a terminal."
            else:
                message = f"{place} has no SFTP, which copying files needs."
                next_step = "Enable it: 'Subsystem sftp internal-sftp' in sshd_config; Dropbear needs an sftp-server."
            raise DeviceTrouble(TroubleKind.BROKEN, message, next_step=next_step) from error

    def put(self, source: Path, path: str) -> None:
        """Copy a local file, executable by its owner; folders are made.

        Raises:
            DeviceTrouble: the device does not take it (BROKEN, FULL).
            DeviceError: the local file cannot be read.
            Exception: whatever paramiko and sockets raise when the connection fails.
        """
        try:
            local = source.open("rb")
        except OSError as error:
            raise DeviceError(f"{source} cannot be read: {error.strerror}.") from error
        with local:
            remote = self._create(path)
            try:
                self._write(local, remote, path)
            except DeviceTrouble:
                with contextlib.suppress(Exception):
                    remote.close()
                raise
            remote.close()

    def close(self) -> None:
        """End the session."""
        self._client.close()

    def _write(self, local: BinaryIO, remote: Any, path: str) -> None:
        chunk = local.read(_CHUNK_BYTES)
        with self._refusals(f"{path} cannot be written", TroubleKind.FULL):
            while chunk:
                following = local.read(_CHUNK_BYTES)
                # The last write waits for the answers to all of them, which close() ignores.
                remote.set_pipelined(bool(following))
                remote.write(chunk)
                chunk = following
            remote.chmod(_EXECUTABLE)

    def _create(self, path: str) -> Any:
        with self._refusals(f"{path} cannot be made"), contextlib.suppress(FileNotFoundError):
            return self._client.open(path, "wb")
        refusal = self._make_folders(path)
        with self._refusals(f"{path} cannot be made" if refusal is None else f"The folder of {path} cannot be made"):
            try:
                return self._client.open(path, "wb")
            except FileNotFoundError:
                if refusal is not None:
                    raise refusal from None
                raise

    def _make_folders(self, path: str) -> OSError | None:
        """Make what is missing; returns the last refusal, which for a folder that exists means nothing."""
        last: OSError | None = None
        for folder in reversed(PurePosixPath(path).parents):
            if str(folder) not in (".", "/"):
                try:
                    self._client.mkdir(str(folder))
                    last = None
                except OSError as error:
                    if self._is_of_connection(error):
                        raise
                    last = error
        return last

    def _is_of_connection(self, error: OSError) -> bool:
        return isinstance(error, TimeoutError) or bool(self._client.get_channel().closed)

    @contextlib.contextmanager
    def _refusals(self, what: str, vague: TroubleKind = TroubleKind.BROKEN) -> Iterator[None]:
        """SFTP tells 'permission denied' and 'no such file'; everything else is a 'failure'."""
        try:
            yield
        except OSError as error:
            if self._is_of_connection(error):
                raise
            kind = TroubleKind.BROKEN
            if isinstance(error, PermissionError):
                cause = "permission denied"
                next_step = "Give the device a folder that its user owns, in the inventory."
            elif vague is TroubleKind.FULL:
                kind = vague
                cause = "its storage is full or a quota is used up"
                next_step = "Free space on the device (df -h shows what is left), or give it another folder."
            else:
                cause = "the file system is read-only or full, or the name is taken by something else"
                next_step = "Look at the path on the device, or give the device another folder in the inventory."
            raise DeviceTrouble(kind, f"{what} on {self._place}: {cause}.", next_step=next_step) from error
