"""Leases of a device's slots, which all of its users share."""

from __future__ import annotations

from dataclasses import dataclass, field

from devices.agent.reply_fields import ReplyInteger, ReplyText
from devices.agent.session import AgentSession, Fields
from devices.remote_place import RemotePlace
from targets.values.checks import list_of
from targets.values.records import record


@dataclass(frozen=True)
class LeaseClaim:
    """Who asks for a slot.

    Attributes:
        slot: which of the device's, from 0.
        lease_folder: where the device's leases lie; None takes the usual place.
        token: what the lease is held by, hexadecimal; a secret.
        owner: for people.
        ttl_s: how long it lasts without being renewed.
    """

    slot: int
    lease_folder: str | None
    token: str = field(repr=False)
    owner: str
    ttl_s: float

    def fields(self) -> Fields:
        """As the agent takes it."""
        fields = [("slot", str(self.slot)), ("token", self.token), ("owner", self.owner), ("ttl_s", f"{self.ttl_s:g}")]
        return fields if self.lease_folder is None else [("lease_folder", self.lease_folder), *fields]


@dataclass(frozen=True)
class SlotLease:
    """A lease that is held.

    Attributes:
        since_s: how long it has been held.
        expires_in_s: how long it lasts unless it is renewed.
    """

    slot: ReplyInteger
    owner: ReplyText
    since_s: float
    expires_in_s: float


def show_leases(session: AgentSession, place: RemotePlace) -> tuple[SlotLease, ...]:
    """The leases that are held, by their slots.

    Raises:
        DeviceTrouble: of any kind.
    """
    reply = session.ask("lease-show", [] if place.lease_folder is None else [("lease_folder", place.lease_folder)])
    return reply.value("leases", list_of(record(SlotLease, passes_unknown=True)))


def take_lease(session: AgentSession, claim: LeaseClaim, *, force: bool = False) -> SlotLease:
    """Take or renew the lease; `force` takes it from whoever holds it.

    Raises:
        DeviceTrouble: LEASED, another one holds it; or of any kind.
    """
    fields = session.ask("lease-take", [*claim.fields(), ("force", str(int(force)))])
    return SlotLease(claim.slot, claim.owner, fields.number("since_s"), fields.number("expires_in_s"))


def release_lease(session: AgentSession, claim: LeaseClaim, *, limit_s: float = 60.0) -> bool:
    """Give the lease up; false when it was not held by this claim's token.

    Raises:
        DeviceTrouble: of any kind.
    """
    return session.ask("lease-release", claim.fields(), limit_s=limit_s).flag("released")
