"""An authenticated SSH connection, through jump hosts where there are any."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.ssh.authentication import SshAuthentication
from halide_autotune.devices.ssh.host_key import SshHostKeyCheck
from halide_autotune.devices.ssh.route import SshHop
from halide_autotune.devices.ssh.secrets import SshSecrets

_LOGIN_TIMEOUT_S = 30.0
# Paramiko's codes of RFC 4254, section 5.1.
_OPEN_PROHIBITED = 1
_VERDICT_S = 0.5
_HERE = ("127.0.0.1", 0)


class SshConnection:
    """Connects at once; host keys are checked at every hop before anything is sent there.

    A peer that is silent for an interval is asked for a sign of life, and given up after another one: the
    connection then ends by itself, with whatever waits on it.

    Args:
        hops: the servers, outermost first; the last one is the device.
        secrets: for logging in.

    Raises:
        DeviceTrouble: UNREACHABLE, REFUSED, LOST, TIMEOUT or BROKEN.
    """

    def __init__(self, hops: Sequence[SshHop], secrets: SshSecrets) -> None:
        _silence_paramiko()
        self._transports: list[Any] = []
        self._closed = threading.Event()
        self._device = hops[-1].place
        try:
            for hop in hops:
                self._extend(hop, secrets)
        except BaseException:
            self.close()
            raise
        self._keep_alive(hops[-1].alive_interval_s)

    @property
    def transport(self) -> Any:
        """The paramiko.Transport of the device."""
        return self._transports[-1]

    @property
    def is_alive(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return not self._closed.is_set() and all(transport.is_active() for transport in self._transports)

    @property
    def was_silent(self) -> bool:
        """Whether it ended because the device, or a jump host, said nothing more."""
        return any(transport.sock.gave_up for transport in self._transports)

    def open_session(self, timeout_s: float) -> Any:
        """A new paramiko.Channel for a program.

        Raises:
            DeviceTrouble: the server refuses another session (BROKEN).
            TimeoutError: it does not answer.
            Exception: whatever paramiko and sockets raise when the connection fails.
        """
        from paramiko import ChannelException, SSHException

        try:
            return self.transport.open_session(timeout=timeout_s)
        except ChannelException as error:
            raise DeviceTrouble(
                TroubleKind.BROKEN,
                f"{self._device} refuses to open a session.",
                next_step="Allow this user several sessions: set MaxSessions in its sshd_config.",
            ) from error
        except SSHException as error:
            if self.ends_soon():
                raise
            raise TimeoutError from error

    def ends_soon(self) -> bool:
        """Whether it has ended; paramiko says so a little later than it ends what waits on the connection."""
        deadline_s = time.monotonic() + _VERDICT_S
        while self.is_alive:
            if time.monotonic() > deadline_s:
                return False
            time.sleep(0.01)
        return True

    def close(self) -> None:
        """End it; quiet when it has ended."""
        self._closed.set()
        # The outermost first: what is inside has nobody to wait for then.
        for transport in self._transports:
            with contextlib.suppress(Exception):  # whatever paramiko makes of a connection that has broken
                transport.close()

    def _extend(self, hop: SshHop, secrets: SshSecrets) -> None:
        from paramiko import Transport

        check = SshHostKeyCheck(hop)
        carrier = _open_channel(self._transports[-1], hop) if self._transports else _open_socket(hop)
        transport = Transport(WatchedSocket(carrier, hop.alive_interval_s))
        self._transports.append(transport)
        transport.banner_timeout = hop.connect_timeout_s
        transport.handshake_timeout = hop.connect_timeout_s
        transport.auth_timeout = _LOGIN_TIMEOUT_S
        options = transport.get_security_options()
        options.key_types = check.order_algorithms(options.key_types)
        _exchange_keys(transport, hop)
        key = transport.get_remote_server_key()
        check.check(key.get_name(), key.asbytes())
        SshAuthentication(transport, hop, secrets).log_in()

    def _keep_alive(self, interval_s: float) -> None:
        transport = self.transport
        watched: WatchedSocket = transport.sock
        closed = self._closed

        def ask() -> None:
            while not closed.wait(interval_s) and transport.is_active():
                if watched.quiet_s >= interval_s / 2:
                    watched.expect_answer()
                    with contextlib.suppress(Exception):  # what waits for a broken connection reports it
                        transport.global_request("keepalive@openssh.com", wait=True)

        threading.Thread(target=ask, name="ssh-keep-alive", daemon=True).start()


class WatchedSocket:
    """What paramiko reads and writes through: a socket, or a channel of a jump host's connection.

    paramiko itself tries for ever to write to a peer that takes nothing, and never asks for a sign of life.

    Args:
        inner: the socket or channel, which it owns.
        patience_s: how long a peer may take no byte, or owe an answer.
    """

    def __init__(self, inner: Any, patience_s: float) -> None:
        self._inner = inner
        self.settimeout = inner.settimeout
        self._patience_s = patience_s
        self._heard_at_s = time.monotonic()
        self._asked_at_s: float | None = None
        self._stuck_since_s: float | None = None
        self.gave_up = False

    @property
    def quiet_s(self) -> float:
        """How long ago the peer was last heard."""
        return time.monotonic() - self._heard_at_s

    def expect_answer(self) -> None:
        """The peer is being asked for a sign of life: any byte from now on will do."""
        if self._asked_at_s is None:
            self._asked_at_s = time.monotonic()

    def recv(self, size: int) -> bytes:
        """See `socket.recv`."""
        try:
            data: bytes = self._inner.recv(size)
        except TimeoutError:
            self._give_up_after(self._asked_at_s)
            raise
        self._heard_at_s = time.monotonic()
        self._asked_at_s = None
        return data

    def send(self, data: bytes) -> int:
        """See `socket.send`."""
        try:
            sent: int = self._inner.send(data)
        except TimeoutError:
            if self._stuck_since_s is None:
                self._stuck_since_s = time.monotonic()
            self._give_up_after(self._stuck_since_s)
            raise
        self._stuck_since_s = None
        return sent

    def close(self) -> None:
        """Let go of it; quiet even where a jump host can no longer be told, as paramiko's thread would die of it."""
        with contextlib.suppress(Exception):
            self._inner.close()

    @property
    def _closed(self) -> bool:
        # paramiko looks at this to know whether waiting for its own thread has an end.
        return bool(self._inner._closed)

    def _give_up_after(self, since_s: float | None) -> None:
        if since_s is not None and time.monotonic() - since_s > self._patience_s:
            self.gave_up = True
            raise ConnectionAbortedError(errno.ECONNABORTED, "the peer is silent")


def _open_socket(hop: SshHop) -> socket.socket:
    try:
        opened = socket.create_connection((hop.host, hop.port), hop.connect_timeout_s)
    except (OSError, UnicodeError) as error:
        raise _unreachable(hop, _cause(error, hop)) from error
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _open_channel(carrier: Any, hop: SshHop) -> Any:
    from paramiko import ChannelException, SSHException

    via = hop.behind[-1]
    try:
        return carrier.open_channel("direct-tcpip", (hop.host, hop.port), _HERE, timeout=hop.connect_timeout_s)
    except ChannelException as error:
        if error.code == _OPEN_PROHIBITED:
            raise DeviceTrouble(
                TroubleKind.REFUSED,
                f"The jump host {via} does not forward connections to {hop.host}:{hop.port}.",
                next_step="Allow it with AllowTcpForwarding and PermitOpen in its sshd_config.",
            ) from error
        raise _unreachable(hop, f"the jump host {via} cannot connect to it") from error
    except (SSHException, EOFError, OSError) as error:
        raise _unreachable(hop, f"the jump host {via} does not answer") from error


def _exchange_keys(transport: Any, hop: SshHop) -> None:
    from paramiko import SSHException
    from paramiko.ssh_exception import IncompatiblePeer

    try:
        transport.start_client(timeout=hop.connect_timeout_s)
    except IncompatiblePeer as error:
        raise DeviceTrouble(
            TroubleKind.BROKEN,
            f"{hop.place} and this SDK have no SSH algorithm in common.",
            next_step="Update the SSH server: old ones only have algorithms that are no longer safe.",
        ) from error
    except (SSHException, EOFError, OSError) as error:
        if transport.sock.quiet_s < hop.connect_timeout_s:
            raise _unreachable(hop, "the server there does not speak SSH, or closed the connection") from error
    # Paramiko returns as if nothing were wrong when the time is up.
    if not transport.initial_kex_done:
        late = f"it accepts connections, but exchanges no keys within {hop.connect_timeout_s:g} s"
        raise _unreachable(hop, late)


def _cause(error: Exception, hop: SshHop) -> str:
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "unknown host name"
    if isinstance(error, TimeoutError):
        return f"no answer within {hop.connect_timeout_s:g} s"
    text = error.strerror if isinstance(error, OSError) else None
    return (text or type(error).__name__).lower()


def _unreachable(hop: SshHop, cause: str) -> DeviceTrouble:
    jump = "" if hop.is_device else "The jump host "
    return DeviceTrouble(
        TroubleKind.UNREACHABLE,
        f"{jump}{hop.place} cannot be reached: {cause}.",
        next_step="Check that it is switched on and in the network, that the address is right, and that sshd runs.",
    )


def _silence_paramiko() -> None:
    """What it logs is said in our own errors; without this, tracebacks of its threads reach the terminal."""
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
