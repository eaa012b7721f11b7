"""A device's connection and lease, which several transports may share."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from halide_autotune.devices.agent.program import AgentProgram
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.devices.device import Device
from halide_autotune.devices.device_link import DeviceLink
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.lease.lease import LeaseClaim, release_lease, take_lease
from halide_autotune.devices.lease.token import LeaseToken
from halide_autotune.targets.errors import DeviceError

_BEATS_PER_LEASE = 3
# The least that an agent takes.
_SHORTEST_LEASE_S = 0.1
# An agent refuses more than a week.
_LONGEST_LEASE_S = 6 * 24 * 3600.0


@dataclass
class Users:
    """How many there are; who comes or goes waits for nobody."""

    count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def join(self) -> None:
        """Count one more."""
        with self._lock:
            self.count += 1

    def leave(self) -> bool:
        """Count one less; return whether it was the last."""
        with self._lock:
            self.count -= 1
            return self.count == 0


@dataclass
class SharedConnection:
    """Used under its lock.

    Attributes:
        own: the connection's own lease, which ends with it.
        taken_by_hand: the lease that this user has taken by hand; it counts until it ends, and is not renewed.
        users: transports that are not closed; counted without the lock.
        opened: a lease has been taken.
        governor_touched: the device was asked for another governor.
        lost_lease: someone else took the lease; each transport reports it once.
    """

    session: AgentSession
    own: LeaseClaim
    taken_by_hand: Callable[[], LeaseToken | None]
    lock: threading.RLock = field(default_factory=threading.RLock)
    users: Users = field(default_factory=Users)
    opened: bool = False
    governor_touched: bool = False
    lost_lease: DeviceTrouble | None = None
    _used: LeaseClaim | None = None
    _leased: bool = False
    _heartbeat: threading.Thread | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def claim(self) -> LeaseClaim:
        """What the device is asked with now."""
        kept = self.taken_by_hand()
        if kept is None or not kept.left_s:
            return self.own
        # What is left: an agent makes no lease longer than it is asked to.
        return replace(self.own, token=kept.token, ttl_s=max(_SHORTEST_LEASE_S, min(self.own.ttl_s, kept.left_s)))

    def claim_for(self, least_s: float) -> LeaseClaim:
        """The same, to last at least so long; a lease that was taken by hand ends when its owner has said."""
        claim = self.claim
        if claim.token != self.own.token:
            return claim
        return replace(claim, ttl_s=max(claim.ttl_s, min(least_s, _LONGEST_LEASE_S)))

    @property
    def is_first(self) -> bool:
        """Whether all that had its token before is dead: nobody else has it, and it has taken no lease yet."""
        return not self.opened and self.is_alone

    @property
    def is_alone(self) -> bool:
        """Whether nobody else has the token that it asks with now."""
        return self.claim.token == self.own.token

    def change_over(self) -> None:
        """Give back a lease that was taken by hand and has ended, so that the connection's own can follow at once.

        An operation that began before the end has kept it until now.
        """
        before, self._used = self._used, self.claim
        if before is not None and before.token not in (self._used.token, self.own.token):
            with contextlib.suppress(DeviceError):  # it expires otherwise
                release_lease(self.session, before)

    def keep_lease(self) -> None:
        """Renew the lease from now on, in a thread; it has just been taken."""
        self.opened = self._leased = True
        if self._heartbeat is None:
            self._heartbeat = threading.Thread(target=self._keep_renewing, name="lease-heartbeat", daemon=True)
            self._heartbeat.start()

    def lose_lease(self, trouble: DeviceTrouble) -> DeviceTrouble | None:
        """Note that someone else has the slot; return the trouble that each transport reports.

        It is the same trouble until the lease is taken again, however often it is met.
        """
        if self._leased:
            self._leased, self.lost_lease = False, trouble
        return self.lost_lease

    def end_heartbeat(self, patience_s: float) -> None:
        """Renew the lease no more, and wait up to `patience_s` for a renewal under way."""
        self._ended.set()
        if self._heartbeat is not None:
            self._heartbeat.join(patience_s)

    def _keep_renewing(self) -> None:
        while not self._ended.wait(self.own.ttl_s / _BEATS_PER_LEASE):
            # The next operation meets the same trouble and reports it.
            with contextlib.suppress(Exception):
                self._renew()

    def _renew(self) -> None:
        if not self.lock.acquire(blocking=False):
            return  # the operation in progress keeps the lease
        try:
            if self.session.connected and self.users.count:
                self.change_over()
                take_lease(self.session, self.claim)
                self._leased = True
        except DeviceTrouble as trouble:
            if trouble.kind is TroubleKind.LEASED:
                self.lose_lease(trouble)
        finally:
            self.lock.release()


def shared_connection(
    link: DeviceLink,
    device: Device,
    agent: Callable[[str], AgentProgram],
    owner: str,
    *,
    taken_by_hand: Callable[[], LeaseToken | None] = lambda: None,
    own_token: str | None = None,
    lease_ttl_s: float = 120.0,
) -> SharedConnection:
    """Return the connection to a device, not yet made.

    Args:
        link: used by nobody else.
        agent: returns the agent's program for what the device's `uname -m` prints.
        owner: of the lease, for people.
        taken_by_hand: asked before each operation for the lease that this user has taken by hand; None without one.
        own_token: of its own lease, by which a process takes over the lease of its dead predecessor.
        lease_ttl_s: how long the lease outlives this process.
    """
    session, place = AgentSession(link, device, agent), device.remote
    assert place is not None, "the session has checked it"
    own = LeaseClaim(place.slot, place.lease_folder, own_token or secrets.token_hex(16), owner, lease_ttl_s)
    return SharedConnection(session, own, taken_by_hand)
