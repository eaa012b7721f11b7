"""From a device of the inventory to the transport that reaches it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from devices.adb.link import AdbLink
from devices.agent.program import agent_for
from devices.device import Device
from devices.device_link import DeviceLink
from devices.lease.token import read_token
from devices.remote.dsp_starter import DspStarter
from devices.remote.transport import AgentTransport
from devices.remote_place import AdbAddress, ConnectionSettings, SshAddress
from devices.ssh.link import SshLink
from targets.process.content_cache import ContentCache


def open_link(
    name: str,
    address: SshAddress | AdbAddress,
    connections: ConnectionSettings,
    ask: Callable[[str], str] | None = None,
    tell: Callable[[str], None] = lambda message: None,
) -> DeviceLink:
    """The wire to a device, not yet connected.

    Args:
        ask: asks a person for a password; None where nobody can be asked.
        tell: shows a person what must be done at the device.
    """
    if isinstance(address, SshAddress):
        return SshLink(name, address, connections, ask)
    return AdbLink(name, address, connections, tell)


def open_remote(
    device: Device, connections: ConnectionSettings, cache: ContentCache, own_token: str | None = None
) -> AgentTransport:
    """The transport to a device behind SSH or ADB, which connects when it is opened.

    A lease that this user has taken by hand is used, and kept.

    Args:
        own_token: the secret of the transport's own lease; None makes a new one.
    """
    place = device.remote
    assert place is not None, "the device is a remote one"
    kept = read_token(connections.token_folder, place)
    token = None if kept is None else kept.token
    link = open_link(device.name, place.address, connections)
    agent = partial(agent_for, cache=cache)
    starter = None if device.dsp is None else DspStarter(device.dsp, cache)
    return AgentTransport(link, device, agent, connections.lease_owner, token, own_token=own_token, starter=starter)
