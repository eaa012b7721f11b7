"""For tests: an agent's transport to this very machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from halide_autotune.devices.agent.program import AgentProgram, agent_for
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.lease.lease import SlotLease, release_lease, show_leases, take_lease
from halide_autotune.devices.lease.token import LeaseToken
from halide_autotune.devices.remote.shared_connection import shared_connection
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_link import LocalLink


def local_device(home: Path, slot: int = 0, **place: Any) -> Device:
    settings: dict[str, Any] = {
        "folder": "work",
        "lease_folder": str(home / "leases"),
        "slot": slot,
        "performance_mode": False,
        **place,
    }
    remote = RemotePlace(SshAddress("here"), **settings)
    return Device("bench", "ssh", "host", Clock.WALL, 1, uses_host_cores=False, remote=remote)


def local_transport(
    home: Path,
    cache: ContentCache,
    *,
    link: LocalLink | None = None,
    slot: int = 0,
    taken_by_hand: Callable[[], LeaseToken | None] = lambda: None,
    own_token: str | None = None,
    owner: str = "tester@here",
    lease_ttl_s: float = 120.0,
    agent: Callable[[str], AgentProgram] | None = None,
    **place: Any,
) -> AgentTransport:
    home.mkdir(parents=True, exist_ok=True)
    device, build = local_device(home, slot, **place), agent or partial(agent_for, cache=cache)
    wire = link or LocalLink(home)
    connection = shared_connection(
        wire, device, build, owner, taken_by_hand=taken_by_hand, own_token=own_token, lease_ttl_s=lease_ttl_s
    )
    return AgentTransport(connection, device)


def leases_of(transport: AgentTransport) -> tuple[SlotLease, ...]:
    """The leases on a transport's device; takes none."""
    transport._session.connect()
    return show_leases(transport._session, transport._place)


def take_lease_of(transport: AgentTransport, force: bool = False) -> SlotLease:
    """Take a transport's lease as a person does by hand."""
    return take_lease(transport._session, transport._connection.claim, force=force)


def release_lease_of(transport: AgentTransport) -> bool:
    return release_lease(transport._session, transport._connection.claim)
