"""The start of a connection to an Android device: it says who it is, and accepts our key or asks its user."""

from __future__ import annotations

import time
from collections.abc import Callable

from halide_autotune.devices.adb.key import AdbKey
from halide_autotune.devices.adb.packets import MAX_PAYLOAD_BYTES, AdbPacket, AdbPackets
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind

# The version of the protocol that has checksums.
_VERSION = 0x01000000
_TOKEN, _SIGNATURE, _PUBLIC_KEY = 1, 2, 3
_TOKEN_BYTES = 20
# Every device takes at least 4096 bytes.
_LEAST_PAYLOAD_BYTES = 4096
# What an interrupted session may have left in a USB pipe, at most.
_MAX_STALE_PACKETS = 64


def greet(packets: AdbPackets, key: AdbKey, tell: Callable[[str], None]) -> str:
    """Introduce ourselves on a new connection, prove who we are, and agree on the size of packets.

    Args:
        tell: shows a person a message, when someone must tap Allow on the device.

    Returns:
        The device's state: 'device' when Android runs, else such as 'recovery' or 'sideload'.

    Raises:
        DeviceTrouble: REFUSED, the device does not accept the key; TIMEOUT; LOST; PROTOCOL_ERROR.
    """
    label, connect_s = packets.label, packets.limits.connect_s
    packets.send(b"CNXN", _VERSION, MAX_PAYLOAD_BYTES, b"host::\0")
    packet = _answer(packets, connect_s)
    if packet.command == b"AUTH":
        packets.send(b"AUTH", _SIGNATURE, 0, key.sign(_token(packet, label)))
        packet = _answer(packets, connect_s)
    if packet.command == b"AUTH":
        packet = _ask(packets, key, tell)
    if packet.command == b"STLS":
        raise DeviceTrouble(
            TroubleKind.REFUSED,
            f"{label} is a wireless-debugging port, which accepts only paired clients.",
            next_step="Connect the device by USB, run 'adb tcpip 5555', and use port 5555.",
        )
    packets.max_payload_bytes = min(packet.argument1, MAX_PAYLOAD_BYTES)
    if packets.max_payload_bytes < _LEAST_PAYLOAD_BYTES:
        message = f"{label} takes packets of at most {packets.max_payload_bytes} bytes; that is not an Android device."
        raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, message)
    state = packet.payload.partition(b":")[0].decode("ascii", "replace")
    return "".join(filter(str.isalnum, state))[:32]


def _ask(packets: AdbPackets, key: AdbKey, tell: Callable[[str], None]) -> AdbPacket:
    """Show the device our public key, and wait until its user allows it."""
    label, allow_s = packets.label, packets.limits.allow_s
    packets.send(b"AUTH", _PUBLIC_KEY, 0, key.public_key + b"\0")
    tell(
        f"{label} asks whether to trust this computer: tap Allow on the device within {allow_s:g} s. "
        f"The key's fingerprint is {key.fingerprint}."
    )
    try:
        return _answer(packets, allow_s, (b"CNXN", b"STLS"))
    except DeviceTrouble as trouble:
        if trouble.kind is TroubleKind.TIMEOUT:
            message = f"Nobody tapped Allow on {label} within {allow_s:g} s (key {key.fingerprint})."
        elif trouble.kind is TroubleKind.LOST:
            message = f"{label} closed the connection after it received our key ({key.fingerprint})."
        else:
            raise
        advice = (
            "Unlock its screen, tap Allow (tick 'Always allow from this computer'), and try again. If it does not ask, "
            "first choose 'Revoke USB debugging authorizations' in its developer options."
        )
        raise DeviceTrouble(TroubleKind.REFUSED, message, next_step=advice) from trouble


def _answer(packets: AdbPackets, wait_s: float, commands: tuple[bytes, ...] = (b"CNXN", b"AUTH", b"STLS")) -> AdbPacket:
    """Return the next packet with one of `commands`; skip a few others, left over from before."""
    deadline_s = time.monotonic() + wait_s
    for _ in range(_MAX_STALE_PACKETS):
        packet = packets.receive(max(0.0, deadline_s - time.monotonic()))
        if packet is None:
            raise DeviceTrouble(
                TroubleKind.TIMEOUT,
                f"{packets.label} accepts the connection but does not answer within {wait_s:g} s.",
                next_step="Unlock its screen, or switch USB debugging off and on in its developer options.",
            )
        if packet.command in commands:
            return packet
    raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, f"{packets.label} sends data before it was asked for any.")


def _token(packet: AdbPacket, label: str) -> bytes:
    # Signing is padding and an exponent, so only a token of the right form gets a signature.
    if packet.argument0 != _TOKEN or len(packet.payload) != _TOKEN_BYTES:
        message = f"{label} asks for a proof of identity that ADB does not have."
        raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, message)
    return packet.payload
