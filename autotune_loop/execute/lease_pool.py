"""The connections and leases that a worker holds, each shared by all runs that use the device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from halide_autotune.devices.device import Device
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.transport import close_all

# Opens the connection to a device that all runs share; not yet connected.
OpenRemote = Callable[[Device], AgentTransport]


@dataclass
class _Lease:
    """One device.

    Attributes:
        users: the runs.
        unused_since_s: monotonic time.
    """

    transport: AgentTransport
    users: set[str] = field(default_factory=set)
    unused_since_s: float = 0.0


class LeasePool:
    """Used by all threads of a worker.

    Args:
        open_remote: makes a device's connection.
    """

    def __init__(self, open_remote: OpenRemote) -> None:
        self._open_remote = open_remote
        self._lock = threading.Condition()
        self._leases: dict[str, _Lease] = {}
        # Devices that are being given back: a run that wants one must not meet our own lease of a moment ago.
        self._closing: set[str] = set()

    def share(self, device: Device, run_id: str) -> AgentTransport:
        """A run's own transport over the device's connection, which is made when it is first used."""
        with self._lock:
            self._lock.wait_for(lambda: device.name not in self._closing)
            lease = self._leases.get(device.name)
            if lease is None:
                lease = self._leases[device.name] = _Lease(self._open_remote(device))
            lease.users.add(run_id)
            return lease.transport.sharing()

    def users(self, device_name: str) -> list[str] | None:
        """The runs that use a device; None when it is not held."""
        lease = self._leases.get(device_name)
        return None if lease is None else sorted(lease.users)

    def leave(self, run_id: str) -> None:
        """A run uses no device any more; its transports are closed."""
        with self._lock:
            for lease in self._leases.values():
                if run_id in lease.users:
                    lease.users.discard(run_id)
                    lease.unused_since_s = time.monotonic()

    def close_unused(self, for_s: float = 0.0) -> None:
        """Give back the devices that no run has used for so long, all at once: a dead one takes its time."""
        with self._lock:
            now_s = time.monotonic()
            idle = [n for n, lease in self._leases.items() if not lease.users and now_s - lease.unused_since_s >= for_s]
            closers = [partial(self._close, name, self._leases.pop(name).transport) for name in idle]
            self._closing.update(idle)
        close_all(closers)

    def _close(self, name: str, transport: AgentTransport) -> None:
        try:
            transport.close()
        finally:
            with self._lock:
                self._closing.discard(name)
                self._lock.notify_all()
