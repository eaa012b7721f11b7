"""A device's connection and lease, which several transports may share."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from devices.agent.session import AgentSession
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.lease.heartbeat import LeaseHeartbeat
from devices.lease.lease import LeaseClaim, take_lease

_BEATS_PER_LEASE = 3


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
    _holds: bool = False
    _heartbeat: LeaseHeartbeat | None = None

    def keep_lease(self) -> None:
        """The lease has been taken: from now on it is renewed."""
        self.opened = self._holds = True
        if self._heartbeat is None:
            self._heartbeat = LeaseHeartbeat(self._beat, self.claim.ttl_s / _BEATS_PER_LEASE)

    def lose_lease(self, trouble: DeviceTrouble) -> DeviceTrouble | None:
        """Someone else was met in the slot, by a transport or by a renewal; gives what each transport hears of it.

        Until the lease is taken again that is the same loss, however often it is met.
        """
        if self._holds:
            self._holds, self.lost_lease = False, trouble
        return self.lost_lease

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
                self._holds = True
        except DeviceTrouble as trouble:
            if trouble.kind is TroubleKind.LEASED:
                self.lose_lease(trouble)
        finally:
            self.lock.release()
