"""A short name for a device's address, for files that are kept about it."""

from __future__ import annotations

import hashlib
import json

from devices.remote_place import AdbAddress, SshAddress


def device_key(address: SshAddress | AdbAddress) -> str:
    """Return 16 hexadecimal digits, equal for one device under whatever name, in whatever inventory."""
    ways = list(address.jump) if isinstance(address, SshAddress) else [address.serial]
    parts = [type(address).__name__, address.describe(), *ways]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
