"""Leases that a user takes and gives back: on the device, and the secret that is kept here."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from halide_autotune.devices.lease.lease import SlotLease
from halide_autotune.devices.lease.token import LeaseToken, forget_token, keep_token, new_token, read_token
from halide_autotune.devices.remote_place import RemotePlace
from halide_autotune.sdk.inventory.device_access import ReachedDevice
from halide_autotune.targets.errors import SdkError, UsageError
from halide_autotune.targets.values.texts import parse_duration_s

LONGEST_LEASE_S = 7 * 24 * 3600.0


def parse_lease_s(text: str) -> float:
    """Return '90s', '10m' or '2h' in seconds.

    Raises:
        UsageError: it is not a duration, or longer than a device accepts.
    """
    duration_s = parse_duration_s(text)
    if duration_s > LONGEST_LEASE_S:
        raise UsageError(f"--for {text}: a lease lasts {LONGEST_LEASE_S / 86400:.0f} days at most.")
    return duration_s


def take_leases(reached: ReachedDevice, places: Sequence[RemotePlace], ttl_s: float, force: bool) -> list[SlotLease]:
    """Take all the slots or none; renew those that this user holds already.

    Args:
        force: take them from their current holder.

    Raises:
        DeviceError: someone else holds one, or the device or the folder cannot be used.
    """
    taken: list[SlotLease] = []
    fresh: list[RemotePlace] = []
    try:
        for place in places:
            known = read_token(reached.token_folder, place)
            token = new_token() if known is None else known.token
            if known is None or not known.left_s:
                fresh.append(place)
            # Kept first, so that the lease can be given back even if this program is killed; but this user's runs do
            # not ask with it before the device has granted it.
            keep_token(reached.token_folder, place, LeaseToken(token, 0.0 if known is None else known.ends_unix_s))
            ends_unix_s = time.time() + ttl_s
            taken.append(reached.take_lease(place.slot, token, ttl_s, force))
            keep_token(reached.token_folder, place, LeaseToken(token, ends_unix_s))
    except SdkError:
        for place in fresh:
            _give_back(reached, place)
        raise
    return taken


def release_leases(reached: ReachedDevice, places: Sequence[RemotePlace], force: bool) -> bool:
    """Give the slots back; return False if none was leased any more.

    Args:
        force: end the leases of other users, too.

    Raises:
        UsageError: none is leased by hand, and nothing is forced.
        DeviceError: the device or the folder cannot be used.
    """
    tokens = {place.slot: read_token(reached.token_folder, place) for place in places}
    if not force and not any(tokens.values()):
        raise UsageError(
            "You have no lease on it from this machine.",
            next_step="Run `sdk devices` to see who holds it, or end any lease with --force.",
        )
    held = {lease.slot for lease in reached.leases()}
    released = False
    for place in places:
        lease = tokens[place.slot]
        token = new_token() if lease is None else lease.token
        if force and place.slot in held:
            reached.take_lease(place.slot, token, 60.0, force=True)
        if lease is not None or force:
            released |= reached.release_lease(place.slot, token)
            forget_token(reached.token_folder, place)
    return released


def _give_back(reached: ReachedDevice, place: RemotePlace) -> None:
    lease = read_token(reached.token_folder, place)
    # Where that fails the lease expires; the error that is being handled matters more.
    with contextlib.suppress(SdkError):
        if lease is not None:
            reached.release_lease(place.slot, lease.token)
    forget_token(reached.token_folder, place)
