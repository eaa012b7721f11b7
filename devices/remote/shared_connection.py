"""A device's connection and lease, which several transports may share."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from devices.agent.session import AgentSession
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.lease.lease import LeaseClaim, take_lease

_BEATS_PER_LEASE = 3


@dataclass
class SharedConnection:
    """Used under its lock.

    Attributes:
        own_lease: the lease was not taken before, and ends with the connection.
        users: transports that are not closed.
        opened: the lease has been taken.
        governor_touched: the device was asked for another governor.
        lost_lease: someone else took the lease; each transport reports it once.
    """

    session: AgentSession
    claim: LeaseClaim
    own_lease: bool
    lock: threading.RLock = field(default_factory=threading.RLock)
    users: int = 0
    opened: bool = False
    governor_touched: bool = False
    lost_lease: DeviceTrouble | None = None
    _leased: bool = False
    _heartbeat: _Heartbeat | None = None

    def keep_lease(self) -> None:
        """Renew the lease from now on; it has just been taken."""
        self.opened = self._leased = True
        if self._heartbeat is None:
            self._heartbeat = _Heartbeat(self._beat, self.claim.ttl_s / _BEATS_PER_LEASE)

    def lose_lease(self, trouble: DeviceTrouble) -> DeviceTrouble | None:
        """Note that someone else has the slot; return the trouble that each transport reports.

        It is the same trouble until the lease is taken again, however often it is met.
        """
        if self._leased:
            self._leased, self.lost_lease = False, trouble
        return self.lost_lease

    def end_heartbeat(self, patience_s: float) -> None:
        """Stop renewing the lease."""
        if self._heartbeat is not None:
            self._heartbeat.end(patience_s)

    def _beat(self) -> None:
        if not self.lock.acquire(blocking=False):
            return  # the operation in progress keeps the lease
        try:
            if self.session.connected and self.users:
                take_lease(self.session, self.claim)
                self._leased = True
        except DeviceTrouble as trouble:
            if trouble.kind is TroubleKind.LEASED:
                self.lose_lease(trouble)
        finally:
            self.lock.release()


class _Heartbeat:
    """Calls `beat` every `every_s` seconds in a thread of its own.

    It drops what `beat` raises: the next operation meets the same trouble and reports it.
    """

    def __init__(self, beat: Callable[[], None], every_s: float) -> None:
        self._beat = beat
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease-heartbeat", daemon=True)
        self._thread.start()

    def end(self, patience_s: float) -> None:
        """Begin no further beat, and wait up to `patience_s` for the current one."""
        self._ended.set()
        self._thread.join(patience_s)

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            with contextlib.suppress(Exception):
                self._beat()
