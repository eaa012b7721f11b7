"""A device's connection and lease, which several transports may share."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from devices.agent_session import AgentSession
from devices.device_lease import LeaseClaim, take_lease
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.lease_heartbeat import LeaseHeartbeat


@dataclass
class SharedConnection:
    """Used under its lock.

    Attributes:
        own_lease: the lease ends with the connection; it was not taken before.
        users: transports that are not closed.
        opened: the lease has been taken.
        governor_touched: the device was asked for another governor.
        lost_lease: someone else has taken the lease; each transport says so once.
    """

    session: AgentSession
    claim: LeaseClaim
    own_lease: bool
    lock: threading.RLock = field(default_factory=threading.RLock)
    users: int = 0
    opened: bool = False
    governor_touched: bool = False
    lost_lease: DeviceTrouble | None = None
    _heartbeat: LeaseHeartbeat | None = None

    def keep_lease(self) -> None:
        """The lease has been taken: from now on it is renewed."""
        self.opened = True
        if self._heartbeat is None:
            self._heartbeat = LeaseHeartbeat(self._beat, self.claim.ttl_s / 3)

    def end_heartbeat(self, patience_s: float) -> None:
        """The lease is renewed no more."""
        if self._heartbeat is not None:
            self._heartbeat.end(patience_s)

    def _beat(self) -> None:
        if not self.lock.acquire(blocking=False):
            return  # what is going on keeps the lease
        try:
            if self.session.connected and self.users:
                take_lease(self.session, self.claim)
        except DeviceTrouble as trouble:
            if trouble.kind is TroubleKind.LEASED:
                self.lost_lease = trouble
        finally:
            self.lock.release()
