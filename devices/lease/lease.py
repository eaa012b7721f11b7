"""Leases of a device's slots, which all of its users share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from halide_autotune.devices.agent.protocol import Printable
from halide_autotune.devices.agent.session import AgentSession, Fields
from halide_autotune.devices.remote_place import RemotePlace
from halide_autotune.targets.values.checks import number, whole_number

_HIGHEST_SLOT = 4095
# A lease may end between the device's look at it and its look at the clock.
_lease_time_s = number(-60, 1e9)


@dataclass(frozen=True)
class LeaseClaim:
    """Who asks for a slot.

    Attributes:
        slot: which of the device's slots, from 0.
        lease_folder: the device's folder of leases; None for the default.
        token: the secret that the lease belongs to, hexadecimal.
        owner: the user, for people.
        ttl_s: how long the lease lasts without renewal.
    """

    slot: int
    lease_folder: str | None
    token: str = field(repr=False)
    owner: str
    ttl_s: float

    def fields(self) -> Fields:
        """Return the claim as fields of a request."""
        fields = [("slot", str(self.slot)), ("token", self.token), ("owner", self.owner), ("ttl_s", f"{self.ttl_s:g}")]
        return fields if self.lease_folder is None else [("lease_folder", self.lease_folder), *fields]


@dataclass(frozen=True)
class SlotLease:
    """A lease that someone has.

    Attributes:
        since_s: seconds since it was taken.
        expires_in_s: seconds until it ends unless it is renewed.
    """

    slot: Annotated[int, whole_number(0, _HIGHEST_SLOT)]
    owner: Printable
    since_s: Annotated[float, _lease_time_s]
    expires_in_s: Annotated[float, _lease_time_s]


@dataclass(frozen=True)
class _Leases:
    leases: tuple[SlotLease, ...]


@dataclass(frozen=True)
class _Released:
    released: bool


def show_leases(session: AgentSession, place: RemotePlace) -> tuple[SlotLease, ...]:
    """Return the current leases of the device, by slot.

    Raises:
        DeviceTrouble: of any kind.
    """
    fields = [] if place.lease_folder is None else [("lease_folder", place.lease_folder)]
    return session.ask_for(_Leases, "lease-show", fields).leases


def take_lease(session: AgentSession, claim: LeaseClaim, *, force: bool = False) -> SlotLease:
    """Take or renew the lease; `force` takes it from its owner.

    Raises:
        DeviceTrouble: LEASED, someone else has it; or of any kind.
    """
    return session.ask_for(SlotLease, "lease-take", [*claim.fields(), ("force", str(int(force)))])


def release_lease(session: AgentSession, claim: LeaseClaim, *, limit_s: float = 60.0) -> bool:
    """Release the lease; return False when it did not belong to this claim's token.

    Raises:
        DeviceTrouble: of any kind.
    """
    return session.ask_for(_Released, "lease-release", claim.fields(), limit_s=limit_s).released
