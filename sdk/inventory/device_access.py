"""Connections to devices of the inventory, for commands that examine or lease them; connecting takes no lease."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from halide_autotune.devices.agent.program import AgentProgram, agent_for
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.devices.health.canary import time_canary
from halide_autotune.devices.health.probe import DeviceProbe, DeviceSense, probe_device, sense_device
from halide_autotune.devices.inventory.inventory import InventoryDevice
from halide_autotune.devices.lease.lease import LeaseClaim, SlotLease, release_lease, show_leases, take_lease
from halide_autotune.devices.lease.token import LeaseToken, read_token
from halide_autotune.devices.remote.open import open_link
from halide_autotune.devices.remote_place import ConnectionSettings
from halide_autotune.sdk.inventory.connections import ask_on_terminal, connection_settings, refuse_to_ask
from halide_autotune.sdk.inventory.device_listing import DeviceState, ask_devices, health_of
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.process.content_cache import ContentCache

_HAND_LEASE_OWN_TTL_S = 60.0
_MACHINES = {"x86-64": "x86_64", "arm-64": "aarch64", "arm-32": "armv7l", "riscv-64": "riscv64"}


class ReachedDevice:
    """A connected device. Every method raises DeviceTrouble.

    Attributes:
        token_folder: the folder of the secrets of leases that are taken by hand.
    """

    def __init__(self, session: AgentSession, device: InventoryDevice, connections: ConnectionSettings) -> None:
        self.token_folder = connections.token_folder
        self._session = session
        self._owner = connections.lease_owner
        self._places = [place for _, place in device.places()]
        self._cores = device.place.cores

    def probe(self) -> DeviceProbe:
        """Return what the device is made of."""
        return probe_device(self._session)

    def sense(self) -> DeviceSense:
        """Return its current state, with all its cores."""
        return sense_device(self._session, ())

    def canary_s(self) -> float:
        """Return the time of a fixed piece of work on one of the cores that kernels run on, in seconds."""
        return time_canary(self._session, self._cores)

    def leases(self) -> tuple[SlotLease, ...]:
        """Return the leases that are held on the slots of the inventory."""
        held = show_leases(self._session, self._places[0])
        return tuple(lease for lease in held if lease.slot < len(self._places))

    def holds(self, lease: SlotLease) -> bool:
        """Say whether a lease was taken by hand, by this user on this machine."""
        return is_taken_by_hand(lease, read_token(self.token_folder, self._places[lease.slot]), self._owner)

    def take_lease(self, slot: int, token: str, ttl_s: float, force: bool) -> SlotLease:
        """Take or renew the lease of a slot."""
        return take_lease(self._session, self._claim(slot, token, ttl_s), force=force)

    def release_lease(self, slot: int, token: str) -> bool:
        """Give a slot back; false when the token does not hold it."""
        return release_lease(self._session, self._claim(slot, token, _HAND_LEASE_OWN_TTL_S))

    def _claim(self, slot: int, token: str, ttl_s: float) -> LeaseClaim:
        return LeaseClaim(slot, self._places[slot].lease_folder, token, self._owner, ttl_s)


def is_taken_by_hand(lease: SlotLease, kept: LeaseToken | None, owner: str) -> bool:
    """Whether a slot's lease is the one that this user has taken by hand, and not one of a run, or somebody else's.

    Args:
        kept: what this machine keeps of one that was taken by hand; the lease may have ended since, or been taken away.
        owner: as this user's leases have it.
    """
    return kept is not None and kept.left_s > 0 and lease.owner == owner


@contextlib.contextmanager
def reach_device(
    device: InventoryDevice,
    settings: Settings,
    show: Callable[[str], None],
    ask_secret: Callable[[str], str] = ask_on_terminal,
) -> Iterator[ReachedDevice]:
    """Connect to a device for a while.

    Args:
        show: called with what the user must do at the device.
        ask_secret: asks for the device's password if the inventory says so.

    Raises:
        DeviceTrouble: it cannot be reached.
        ToolchainError: the agent that runs on the device cannot be built.
    """

    def agent(machine: str) -> AgentProgram:
        show(f"{device.name}: preparing the agent for {machine} …")  # the first one takes a while to build
        return _agent(machine, settings)

    connections = connection_settings(settings)
    link = open_link(device.name, device.place.address, connections, ask_secret, show)
    with contextlib.closing(AgentSession(link, device.devices(threads=1)[0], agent)) as session:
        session.connect()
        yield ReachedDevice(session, device, connections)


def device_states(devices: Sequence[InventoryDevice], settings: Settings) -> list[DeviceState]:
    """Ask devices for their leases, all at once and without asking for a password."""

    def ask(device: InventoryDevice, tell: Callable[[str], None]) -> Sequence[SlotLease]:
        with reach_device(device, settings, tell, refuse_to_ask) as reached:
            return reached.leases()

    prepare_agents(devices, settings)
    return ask_devices(devices, ask, health_of(settings))


def prepare_agents(devices: Sequence[InventoryDevice], settings: Settings) -> None:
    """Build the agents for the devices in advance, so that asking them is quick.

    Errors are ignored here: asking the device raises them again.
    """
    from halide_autotune.targets.profile.loader import load_profile

    for profile_name in dict.fromkeys(device.profile_name for device in devices):
        try:
            words = load_profile(profile_name, settings.profile_folder).halide_target.split("-")
            if machine := _MACHINES.get("-".join(words[:2])):
                _agent(machine, settings)
        except SdkError:
            continue


def _agent(machine: str, settings: Settings) -> AgentProgram:
    return agent_for(machine, ContentCache(settings.cache_folder))
