"""What kind of Android device is emulated."""

from __future__ import annotations

from dataclasses import dataclass

NEW_FEATURES = ("shell_v2", "cmd", "stat_v2", "fixed_push_mkdir")


@dataclass(frozen=True)
class DeviceOptions:
    """The differences between Android's versions that a client notices, and the state the device starts in.

    Attributes:
        serial: `ro.serialno`.
        state: what it says it is running: 'device', 'recovery' and so on.
        max_payload_bytes: the most it takes in a packet: 4096 on old devices.
        version: of the protocol; from 0x01000001 on packets have no checksums.
        features: what the banner lists; () on old devices.
        terminal: `shell:` gives programs a terminal, as before Android 7.
        wireless_debugging: only TLS is taken, as on a port of Android 11's wireless debugging.
        asks_for_keys: clients must prove that they have an accepted key; others wait for `AdbDevice.tap_allow`.
        segment_bytes: the largest TCP segment; None leaves it to the kernel.
        receive_buffer_bytes: of the sockets; None leaves it to the kernel.
        launcher: goes before a program that is an ELF file for AArch64.
    """

    serial: str = "EMULATED01"
    state: str = "device"
    max_payload_bytes: int = 1024 * 1024
    version: int = 0x01000001
    features: tuple[str, ...] = NEW_FEATURES
    terminal: bool = False
    wireless_debugging: bool = False
    asks_for_keys: bool = False
    segment_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    launcher: tuple[str, ...] = ()


def old_phone() -> DeviceOptions:
    """Android 5: small packets with checksums, a terminal, nothing of version 2."""
    return DeviceOptions(max_payload_bytes=4096, version=0x01000000, features=(), terminal=True)
