"""ADB over TCP."""

from __future__ import annotations

import contextlib
import socket

from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind

# A device that loses power does not say so: the kernel asks after this much silence, and soon gives up.
_KEEPALIVE_IDLE_S = 10
_KEEPALIVE_INTERVAL_S = 5
_KEEPALIVE_PROBES = 4


class AdbTcpWire:
    """A TCP connection to a device's adbd.

    adb-shell's own transport drops what a full socket buffer does not take, spins on a closed connection, and leaves
    Nagle's algorithm on, which costs 40 ms a packet.

    Args:
        label: the device in messages.

    Raises:
        DeviceTrouble: UNREACHABLE.
    """

    def __init__(self, host: str, port: int, label: str, limits: AdbLimits) -> None:
        self._label = label
        self._silence_s = limits.silence_s
        self._socket = _connect(host, port, label, limits.connect_s)

    def read(self, size_bytes: int, wait_s: float) -> bytes:
        """See `AdbWire.read`."""
        try:
            # With a timeout of 0 a socket does not wait, and raises something else.
            self._socket.settimeout(max(0.001, wait_s))
            data = self._socket.recv(size_bytes)
        except TimeoutError:
            return b""
        except OSError as error:
            raise self._lost(error) from error
        if not data:
            raise self._lost(None)
        return data

    def write(self, header: bytes, payload: bytes) -> None:
        """See `AdbWire.write`. Header and payload leave together, in one network packet where they fit."""
        rest = memoryview(header + payload)
        try:
            self._socket.settimeout(self._silence_s)
            while rest:
                rest = rest[self._socket.send(rest) :]
        except TimeoutError as error:
            message = f"{self._label} has taken no data for {self._silence_s:g} s."
            raise DeviceTrouble(TroubleKind.TIMEOUT, message) from error
        except OSError as error:
            raise self._lost(error) from error

    def close(self) -> None:
        """See `AdbWire.close`."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _lost(self, error: OSError | None) -> DeviceTrouble:
        reason = "" if error is None else f": {error.strerror or error}"
        return DeviceTrouble(TroubleKind.LOST, f"{self._label} closed the connection{reason}.")


def _connect(host: str, port: int, label: str, connect_s: float) -> socket.socket:
    try:
        connected = socket.create_connection((host, port), timeout=connect_s)
    except (OSError, UnicodeError) as error:
        next_step = "Check that the device is switched on and in the same network."
        if isinstance(error, (socket.gaierror, UnicodeError)):
            how = f"cannot be found: no address is known for the name {host!r}"
            next_step = "Check the name, or use an address."
        elif isinstance(error, ConnectionRefusedError):
            how = f"refuses connections: no adbd listens on port {port}"
            next_step = f"Connect the device by USB and run 'adb tcpip {port}', again after each of its restarts."
        elif isinstance(error, TimeoutError):
            how = f"did not accept the connection within {connect_s:g} s"
        else:
            how = f"cannot be reached: {error.strerror or error}"
        raise DeviceTrouble(TroubleKind.UNREACHABLE, f"{label} {how}.", next_step=next_step) from error
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
    return connected
