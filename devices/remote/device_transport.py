"""From a device to the transport that reaches it, wherever it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from devices.device import Device
from devices.local.open_device import open_transport
from devices.remote.open_remote import open_remote
from devices.remote_place import ConnectionSettings
from devices.transport import Transport
from targets.process.content_cache import ContentCache
from targets.profile.profile import TargetProfile


def device_transport(
    device: Device,
    profile: TargetProfile,
    parent_folder: Path,
    environment: Mapping[str, str],
    cores: frozenset[int],
    connections: ConnectionSettings | None,
    cache: ContentCache,
) -> Transport:
    """A transport to `device`, for one user at a time; a remote one connects when it is opened.

    Args:
        parent_folder, environment, cores: of a device on this machine.
        connections, cache: of a remote one, which must have connections.

    Raises:
        EmulatorError: the emulator is missing.
        DeviceError: no folder can be made for it.
    """
    if device.remote is None:
        return open_transport(device, profile, parent_folder, environment, cores or None)
    assert connections is not None, "remote devices come with connections"
    return open_remote(device, connections, cache)
