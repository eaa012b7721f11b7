"""The connections and leases that a member holds, each shared by all runs that use the device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from devices.device import Device
from devices.remote.transport import AgentTransport

# Opens the connection to a device that all runs share; not yet connected.
OpenRemote = Callable[[Device], AgentTransport]


@dataclass
class _Hold:
    """One device.

    Attributes:
        users: the runs.
        unused_since_s: monotonic time.
    """

    transport: AgentTransport
    users: set[str] = field(default_factory=set)
    unused_since_s: float = 0.0


class DeviceHolds:
    """Used by all threads of a member.

    Args:
        open_remote: makes a device's connection.
        idle_lease_s: how long a device is held when no run uses it any more.
    """

    def __init__(self, open_remote: OpenRemote, idle_lease_s: float) -> None:
        self._open_remote = open_remote
        self._idle_lease_s = idle_lease_s
        self._lock = threading.Lock()
        self._holds: dict[str, _Hold] = {}

    def share(self, device: Device, run_id: str) -> AgentTransport:
        """A run's own transport over the device's connection, which is made when it is first used."""
        with self._lock:
            hold = self._holds.get(device.name)
            if hold is None:
                hold = self._holds[device.name] = _Hold(self._open_remote(device))
            hold.users.add(run_id)
            return hold.transport.sharing()

    def users(self, device_name: str) -> list[str] | None:
        """The runs that use a device; None when it is not held."""
        hold = self._holds.get(device_name)
        return None if hold is None else sorted(hold.users)

    def leave(self, run_id: str) -> None:
        """A run uses no device any more; its transports are closed."""
        with self._lock:
            for hold in self._holds.values():
                if run_id in hold.users:
                    hold.users.discard(run_id)
                    hold.unused_since_s = time.monotonic()

    def close_idle(self) -> None:
        """Give back the devices that no run has used for a while."""
        self._close_unused(self._idle_lease_s)

    def close(self) -> None:
        """Give back every device that no run uses."""
        self._close_unused(0.0)

    def _close_unused(self, for_s: float) -> None:
        with self._lock:
            now_s = time.monotonic()
            idle = [n for n, hold in self._holds.items() if not hold.users and now_s - hold.unused_since_s >= for_s]
            # Inside the lock: a run that comes now must not meet our own lease of a moment ago.
            for name in idle:
                self._holds.pop(name).transport.close()
