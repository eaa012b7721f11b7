"""A device on the other end of an SSH connection."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from halide_autotune.devices.device_link import join_words
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind, transfer_failure
from halide_autotune.devices.remote_place import ConnectionSettings, SshAddress
from halide_autotune.devices.ssh.connection import SshConnection
from halide_autotune.devices.ssh.route import plan_route
from halide_autotune.devices.ssh.secrets import SshSecrets
from halide_autotune.targets.errors import DeviceError, os_error_as

_SILENCE_S = 30.0
_TICK_S = 0.2
_BLOCK_BYTES = 2**18
_LARGEST_FILE_BYTES = 2**32
_COMPLAINT_BYTES = 500
_NO_STATUS = -1


class SshLink:
    """The DeviceLink of SSH, over paramiko.

    Host keys are checked against the user's known_hosts, which are never written. The user's SSH configuration
    counts where the address leaves something open.

    Args:
        name: the device's, as the user calls it.
        address: where it is.
        connections: the user's SSH files, and secrets that were asked for before.
        ask_password: asks a person for a secret; None where nobody can be asked.
        silence_s: how long a transfer may stand still.
    """

    def __init__(
        self,
        name: str,
        address: SshAddress,
        connections: ConnectionSettings,
        ask_password: Callable[[str], str] | None = None,
        *,
        silence_s: float = _SILENCE_S,
    ) -> None:
        self._name = name
        self._address = address
        self._connections = connections
        self._secrets = SshSecrets(name, address.password_source, dict(connections.secrets), ask_password)
        self._silence_s = silence_s
        self._connection: SshConnection | None = None

    def connect(self) -> None:
        """See `DeviceLink.connect`."""
        if self._connection is not None and self._connection.is_alive:
            return
        self.close()
        try:
            self._connection = SshConnection(plan_route(self._address, self._connections), self._secrets)
        except DeviceTrouble as trouble:
            raise DeviceTrouble(
                trouble.kind, f"{self._name}: {trouble.message}", next_step=trouble.next_step
            ) from trouble

    def put(self, source: Path, path: str) -> None:
        """See `DeviceLink.put`."""
        with self._connected(f"{source.name} was being copied", TroubleKind.TIMEOUT) as connection:
            self._put(connection, source, path)

    def get(self, path: str, destination: Path) -> None:
        """See `DeviceLink.get`."""
        with self._connected(f"{path} was being fetched", TroubleKind.TIMEOUT) as connection:
            self._get(connection, path, destination)

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        """See `DeviceLink.stream`."""
        return self._stream(join_words(words), Path(words[0]).name)

    def close(self) -> None:
        """See `DeviceLink.close`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _stream(self, command: str, program: str) -> Iterator[bytes]:
        with (
            self._connected(f"{program} was running", TroubleKind.LOST) as connection,
            self._started(connection, command, program) as channel,
        ):
            channel.settimeout(_TICK_S)
            while not _is_over(channel):
                try:
                    block = channel.recv(_BLOCK_BYTES)
                except TimeoutError:
                    block = b""
                else:
                    if not block and not channel.closed:
                        # It closed its output and runs on.
                        channel.status_event.wait(_TICK_S)
                yield block
            _check_ended_well(connection, channel)

    def _put(self, connection: SshConnection, source: Path, path: str) -> None:
        folder, target = join_words([str(PurePosixPath(path).parent)]), join_words([path])
        command = f"mkdir -p {folder} && env LC_ALL=C cat > {target} && chmod 700 {target}"
        with (
            contextlib.closing(_read_blocks(source)) as blocks,
            self._started(connection, command, "cat", combine=False) as channel,
        ):
            channel.settimeout(self._silence_s)
            try:
                for block in blocks:
                    channel.sendall(block)
                channel.shutdown_write()
            except TimeoutError:
                raise
            except OSError:
                pass  # the command or the connection has ended
            self._check_success(connection, channel, path)

    def _get(self, connection: SshConnection, path: str, destination: Path) -> None:
        command = join_words(["cat", path])
        with self._started(connection, command, "cat", combine=False) as channel, _writing(destination) as write:
            channel.settimeout(self._silence_s)
            size_bytes = 0
            while block := channel.recv(_BLOCK_BYTES):
                size_bytes += len(block)
                if size_bytes > _LARGEST_FILE_BYTES:
                    raise DeviceTrouble(TroubleKind.BROKEN, f"{path} on {self._name} is larger than 4 GiB.")
                write(block)
            self._check_success(connection, channel, path)

    def _check_success(self, connection: SshConnection, channel: Any, path: str) -> None:
        """Wait for the end of the command that transfers `path`; raises what it complains of."""
        if not channel.status_event.wait(self._silence_s):
            raise TimeoutError
        _check_ended_well(connection, channel)
        if channel.exit_status != 0:
            raise transfer_failure(self._name, path, _read_complaint(channel))

    @contextlib.contextmanager
    def _started(self, connection: SshConnection, command: str, program: str, combine: bool = True) -> Iterator[Any]:
        """A channel on which a command runs, until it is left."""
        from paramiko import SSHException

        channel = connection.open_session(self._silence_s)
        try:
            channel.set_combine_stderr(combine)
            try:
                channel.exec_command(command)
            except SSHException as error:
                if connection.ends_soon():
                    raise
                raise DeviceTrouble(
                    TroubleKind.BROKEN,
                    f"{self._name} does not start {program}: its SSH server refuses to run commands for this user.",
                    next_step="Allow commands there; a ForceCommand or a restricted key may forbid them.",
                ) from error
            yield channel
        finally:
            # Whatever waits for a connection that has ended says so, and not this.
            with contextlib.suppress(Exception):
                channel.close()

    @contextlib.contextmanager
    def _connected(self, what: str, silent: TroubleKind) -> Iterator[SshConnection]:
        """The connection; when it fails, so does `what`, with kind `silent` if the device said nothing more."""
        connection = self._connection
        if connection is None:
            raise DeviceTrouble(TroubleKind.LOST, f"{self._name} is not connected.", next_step="Connect again.")
        try:
            yield connection
        except DeviceError:
            raise
        except Exception as error:
            heard_nothing = isinstance(error, TimeoutError) or connection.was_silent
            if connection is self._connection:
                self.close()
            how = "stopped responding" if heard_nothing else "closed the connection"
            raise DeviceTrouble(
                silent if heard_nothing else TroubleKind.LOST,
                f"{self._name} ({self._address.describe()}) {how} while {what}.",
                next_step="Check that it is switched on and in the network.",
            ) from error


def _is_over(channel: Any) -> bool:
    """All its output was read and the program ended, or the connection did."""
    return not channel.recv_ready() and (channel.closed or (channel.eof_received and channel.exit_status_ready()))


def _check_ended_well(connection: SshConnection, channel: Any) -> None:
    # A program that a signal ended has no exit status either.
    if channel.exit_status == _NO_STATUS and connection.ends_soon():
        raise EOFError


def _read_complaint(channel: Any) -> bytes:
    """What a command that ended wrote to its error output, up to about 500 bytes.

    A server may tell that a command has ended before it passes on what the command said, and a command may say it
    word by word: it is read up to its end. Where a process that was left behind keeps it open, what has come counts.
    """
    complaint = b""
    with contextlib.suppress(TimeoutError):
        while len(complaint) < _COMPLAINT_BYTES and (words := channel.recv_stderr(_COMPLAINT_BYTES)):
            complaint += words
    return complaint


def _read_blocks(source: Path) -> Generator[bytes, None, None]:
    """The content of a local file, whose own troubles are not the connection's."""
    with os_error_as(DeviceError, f"{source} cannot be read"), source.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


@contextlib.contextmanager
def _writing(destination: Path) -> Iterator[Callable[[bytes], object]]:
    """Writes to a local file, whose own troubles are not the connection's."""

    def write(block: bytes) -> None:
        with os_error_as(DeviceError, f"{destination} cannot be written"):
            view = memoryview(block)
            while view:
                view = view[file.write(view) :]

    with os_error_as(DeviceError, f"{destination} cannot be written"):
        file = destination.open("wb", buffering=0)
    with file:
        yield write
