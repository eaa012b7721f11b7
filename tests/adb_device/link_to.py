"""An AdbLink to an emulated device, with a key of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from halide_autotune.devices.adb.link import AdbLink
from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.remote_place import AdbAddress, ConnectionSettings

# The emulated device is in this process: what holds one end up may hold the other up as well.
_LIMITS = AdbLimits(connect_s=120.0, silence_s=120.0, allow_s=120.0, poll_s=0.1)
# For tests of silence.
SHORT_LIMITS = AdbLimits(connect_s=120.0, silence_s=8.0, allow_s=120.0, poll_s=0.1)


def link_to(
    port: int,
    folder: Path,
    tell: Callable[[str], None] = lambda _: None,
    *,
    serial: str | None = None,
    limits: AdbLimits = _LIMITS,
) -> AdbLink:
    """An unconnected link to a device on the loopback; its key lies below `folder`."""
    connections = ConnectionSettings(
        ssh_config_file=folder / "none",
        known_hosts_file=folder / "none",
        identity_files=(),
        adb_key_file=folder / "adb" / "adbkey",
        lease_owner="someone@somewhere",
        token_folder=folder / "tokens",
    )
    return AdbLink("phone", AdbAddress("127.0.0.1", port, serial), connections, tell, limits=limits)
