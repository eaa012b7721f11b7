"""From a device to the link and the transport that reach it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from halide_autotune.devices.adb.link import AdbLink
from halide_autotune.devices.agent.program import agent_for
from halide_autotune.devices.device import Device
from halide_autotune.devices.device_link import DeviceLink
from halide_autotune.devices.lease.token import read_token
from halide_autotune.devices.local.open_device import open_transport
from halide_autotune.devices.remote.dsp_starter import DspStarter
from halide_autotune.devices.remote.plug_in_link import open_plug_in_link
from halide_autotune.devices.remote.shared_connection import shared_connection
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.remote_place import Address, ConnectionSettings, SshAddress, UrlAddress
from halide_autotune.devices.ssh.link import SshLink
from halide_autotune.devices.transport import Transport
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.profile import TargetProfile


def device_transport(
    device: Device,
    profile: TargetProfile,
    parent_folder: Path,
    environment: Mapping[str, str],
    cores: frozenset[int],
    connections: ConnectionSettings | None,
    cache: ContentCache,
) -> Transport:
    """Return a transport to `device`, wherever it is, for one user at a time; a remote one connects when it opens.

    Args:
        parent_folder, environment, cores: for a device of this machine.
        connections, cache: for a remote device, which needs connections.

    Raises:
        EmulatorError: the emulator is missing.
        DeviceError: its folder cannot be made.
    """
    if device.remote is None:
        return open_transport(device, profile, parent_folder, environment, cores or None)
    assert connections is not None, "remote devices come with connections"
    return open_remote(device, connections, cache)


def open_remote(
    device: Device, connections: ConnectionSettings, cache: ContentCache, own_token: str | None = None
) -> AgentTransport:
    """Return the transport to a remote device, which connects when it opens.

    It uses a lease that this user has taken by hand until that ends, and leaves it.

    Args:
        own_token: the token of the transport's own lease; None takes that of the connections.
    """
    place = device.remote
    assert place is not None, "the device is a remote one"
    connection = shared_connection(
        open_link(device.name, place.address, connections),
        device,
        partial(agent_for, cache=cache),
        connections.lease_owner,
        taken_by_hand=partial(read_token, connections.token_folder, place),
        own_token=own_token or connections.own_token,
    )
    return AgentTransport(connection, device, None if device.dsp is None else DspStarter(device.dsp, cache))


def open_link(
    name: str,
    address: Address,
    connections: ConnectionSettings,
    ask: Callable[[str], str] | None = None,
    tell: Callable[[str], None] = lambda message: None,
) -> DeviceLink:
    """Return the link to a device, not yet connected.

    Args:
        ask: asks a person for a password; None where nobody can be asked.
        tell: shows a person what to do at the device.

    Raises:
        DeviceTrouble: REFUSED, the package of its transport is not installed or cannot be used.
    """
    if isinstance(address, UrlAddress):
        return open_plug_in_link(name, address)
    if isinstance(address, SshAddress):
        return SshLink(name, address, connections, ask)
    return AdbLink(name, address, connections, tell)
