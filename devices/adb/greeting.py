"""The first words with an Android device: who it is, and whether it knows our key."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from devices.adb.key import AdbKey
from devices.adb.limits import AdbLimits
from devices.adb.packets import MAX_PAYLOAD_BYTES, AdbPacket, AdbPackets
from devices.device_trouble import DeviceTrouble, TroubleKind

# The version of the protocol that has checksums.
_VERSION = 0x01000000
_TOKEN, _SIGNATURE, _PUBLIC_KEY = 1, 2, 3
_TOKEN_BYTES = 20
# No device has ever taken less than 4096 bytes.
_LEAST_PAYLOAD_BYTES = 4096
# What an interrupted session may have left in a USB pipe, at most.
_MAX_STALE_PACKETS = 64


@dataclass(frozen=True)
class AdbGreeting:
    """What a device said of itself.

    Attributes:
        state: 'device' when Android runs; 'recovery', 'sideload' or other else.
        max_payload_bytes: the most it takes in one packet.
    """

    state: str
    max_payload_bytes: int


def greet(packets: AdbPackets, key: AdbKey, label: str, limits: AdbLimits, tell: Callable[[str], None]) -> AdbGreeting:
    """Introduce ourselves on a new connection and prove who we are.

    Args:
        tell: shows a person a message, when someone must tap Allow on the device.

    Raises:
        DeviceTrouble: REFUSED, the device does not take the key; TIMEOUT; LOST; PROTOCOL_ERROR.
    """
    packets.send(b"CNXN", _VERSION, MAX_PAYLOAD_BYTES, b"host::\0")
    packet = _answer(packets, label, limits.connect_s)
    if packet.command == b"AUTH":
        packets.send(b"AUTH", _SIGNATURE, 0, key.sign(_token(packet, label)))
        packet = _answer(packets, label, limits.connect_s)
    if packet.command == b"AUTH":
        packet = _ask(packets, key, label, limits, tell)
    if packet.command == b"STLS":
        raise DeviceTrouble(
            TroubleKind.REFUSED,
            f"{label} is a wireless-debugging port, which only takes clients that were paired with it.",
            next_step="Connect the device by USB, run 'adb tcpip 5555', and use port 5555.",
        )
    max_payload_bytes = min(packet.argument1, MAX_PAYLOAD_BYTES)
    if max_payload_bytes < _LEAST_PAYLOAD_BYTES:
        message = f"{label} wants packets of at most {max_payload_bytes} bytes, which no Android device does."
        raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, message)
    state = packet.payload.partition(b":")[0].decode("ascii", "replace")
    return AdbGreeting("".join(filter(str.isalnum, state))[:32], max_payload_bytes)


def _ask(packets: AdbPackets, key: AdbKey, label: str, limits: AdbLimits, tell: Callable[[str], None]) -> AdbPacket:
    """Show the device our public key, and wait until its user allows it."""
    advice = (
        "Unlock its screen, tap Allow (tick 'Always allow from this computer'), and try again. If it asks nothing, "
        "choose 'Revoke USB debugging authorizations' in its developer options first."
    )
    packets.send(b"AUTH", _PUBLIC_KEY, 0, key.public_key + b"\0")
    tell(
        f"{label} asks its user: tap Allow on the device within {limits.allow_s:g} s. "
        f"The key's fingerprint is {key.fingerprint}."
    )
    try:
        packet = _answer(packets, label, limits.allow_s, (b"CNXN", b"STLS"))
    except DeviceTrouble as trouble:
        if trouble.kind is TroubleKind.TIMEOUT:
            message = f"{label} was not allowed to take our key within {limits.allow_s:g} s ({key.fingerprint})."
        elif trouble.kind is TroubleKind.LOST:
            message = f"{label} closed the connection when it was shown our key ({key.fingerprint})."
        else:
            raise
        raise DeviceTrouble(TroubleKind.REFUSED, message, next_step=advice) from trouble
    return packet


def _answer(
    packets: AdbPackets, label: str, wait_s: float, commands: tuple[bytes, ...] = (b"CNXN", b"AUTH", b"STLS")
) -> AdbPacket:
    """The next packet with one of `commands`; a few others, left over from before, are passed over."""
    deadline_s = time.monotonic() + wait_s
    for _ in range(_MAX_STALE_PACKETS):
        packet = packets.receive(max(0.0, deadline_s - time.monotonic()))
        if packet is None:
            raise DeviceTrouble(
                TroubleKind.TIMEOUT,
                f"{label} takes the connection but does not answer within {wait_s:g} s.",
                next_step="Unlock its screen; switch USB debugging off and on in its developer options.",
            )
        if packet.command in commands:
            return packet
    raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, f"{label} sends data before it was asked for any.")


def _token(packet: AdbPacket, label: str) -> bytes:
    # Signing is padding and an exponent: only what has a token's form gets a signature.
    if packet.argument0 != _TOKEN or len(packet.payload) != _TOKEN_BYTES:
        raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, f"{label} asks for a proof of identity that ADB does not have.")
    return packet.payload
