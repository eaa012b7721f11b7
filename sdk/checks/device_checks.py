"""Whether a device is fit to time kernels on: one check after the other, each with what mends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from devices.health.sense import DeviceSense
from devices.inventory.inventory import InventoryDevice
from devices.lease.lease import SlotLease
from sdk.display.quantities import short_duration_text
from sdk.inventory.device_facts import cores_text
from targets.errors import SdkError

SMALLEST_FREE_BYTES = 256 * 1024**2
HIGHEST_CELSIUS = 75.0
LARGEST_CANARY_SPREAD = 0.05
LARGEST_CLOCK_ERROR = 0.02
_CANARY_REPEATS = 5
_CLOCK_SPAN_S = 1.0
_MIB = 1024**2


@dataclass(frozen=True)
class DeviceCheck:
    """One thing that a device must fulfil.

    Attributes:
        name: what was looked at.
        passed: whether it is as it should be.
        found: what was found, or what is wrong.
        fix: what to do about it; empty where it passed.
    """

    name: str
    passed: bool
    found: str
    fix: str = ""


class CheckedDevice(Protocol):
    """What the checks want of a connected device; every method raises SdkError."""

    def __enter__(self) -> CheckedDevice:
        """Return the device itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the connection."""
        ...

    def sense(self) -> DeviceSense:
        """Return its state just now."""
        ...

    def canary_s(self) -> float:
        """Return the time of a fixed piece of work."""
        ...

    def leases(self) -> Sequence[SlotLease]:
        """Return the leases that are held."""
        ...

    def holds(self, lease: SlotLease) -> bool:
        """Say whether a lease is the user's own."""
        ...


@dataclass(frozen=True)
class _Reading:
    sense: DeviceSense
    begin_s: float
    end_s: float


def check_device(
    device: InventoryDevice,
    reach: Callable[[], CheckedDevice],
    show: Callable[[str], None],
    clock_span_s: float = _CLOCK_SPAN_S,
) -> list[DeviceCheck]:
    """Run all checks; those that need a connection are left out where there is none. Takes a few seconds.

    Args:
        reach: connects; raises SdkError.
        show: told what is going on.
        clock_span_s: for how long the clocks are compared at least.
    """
    show(f"{device.name}: connecting …")
    begin_s = time.monotonic()
    try:
        reached = reach()
    except SdkError as error:
        return [DeviceCheck("connection", False, error.message, error.next_step)]
    with reached:
        connected = f"{device.transport} to {device.address.describe()} in {time.monotonic() - begin_s:.1f} s"
        checks = [DeviceCheck("connection", True, connected)]
        try:
            for check in _checks_over(device, reached, show, clock_span_s):
                checks.append(check)
        except SdkError as error:
            checks.append(DeviceCheck("answer", False, error.message, error.next_step))
    return checks


def _checks_over(
    device: InventoryDevice, reached: CheckedDevice, show: Callable[[str], None], clock_span_s: float
) -> Iterator[DeviceCheck]:
    show(f"{device.name}: state …")
    before = _read(reached)
    yield DeviceCheck("agent", True, "runs there")
    yield _storage(before.sense)
    yield _lease(device, reached)
    yield from _cores(device, before.sense)
    if not device.emulated:
        yield _governor(device, before.sense)
        show(f"{device.name}: speed …")
        yield _canary([reached.canary_s() for _ in range(_CANARY_REPEATS)])
    time.sleep(max(0.0, clock_span_s - (time.monotonic() - before.end_s)))
    after = _read(reached)
    yield _temperature(after.sense)
    yield _clock(before, after)


def _storage(sense: DeviceSense) -> DeviceCheck:
    free = f"{sense.free_bytes / _MIB:.0f} MiB free"
    if sense.free_bytes >= SMALLEST_FREE_BYTES:
        return DeviceCheck("storage", True, free)
    fix = f"Free some: {SMALLEST_FREE_BYTES // _MIB} MiB are wanted; or set `folder` to another file system."
    return DeviceCheck("storage", False, free, fix)


def _lease(device: InventoryDevice, reached: CheckedDevice) -> DeviceCheck:
    leases = reached.leases()
    foreign = [lease for lease in leases if not reached.holds(lease)]
    if not foreign:
        return DeviceCheck("lease", True, "held by you" if leases else "free")
    holder = foreign[0]
    found = f"held by {holder.owner} for {short_duration_text(holder.since_s)}"
    fix = (
        f"Wait {short_duration_text(holder.expires_in_s)} until it ends, or `sdk devices lease {device.name} --force`."
    )
    return DeviceCheck("lease", False, found, fix)


def _cores(device: InventoryDevice, sense: DeviceSense) -> Iterator[DeviceCheck]:
    if device.cores:
        missing = [core for core in device.cores if core not in {core.core for core in sense.cores}]
        text = cores_text(sorted(device.cores))
        if missing:
            yield DeviceCheck("cores", False, f"there is no core {missing[0]}", "Correct `cores` in the inventory.")
        else:
            yield DeviceCheck("cores", True, text)
    if sense.load_1m is not None:
        count = max(1, len(sense.cores))
        passed = sense.load_1m <= max(1.0, 0.5 * count)
        fix = "" if passed else "End other programs on the device: they disturb the times."
        yield DeviceCheck("load", passed, f"{sense.load_1m:.1f} on {count} cores in the last minute", fix)


def _governor(device: InventoryDevice, sense: DeviceSense) -> DeviceCheck:
    used = [core for core in sense.cores if not device.cores or core.core in device.cores]
    governors = sorted({core.governor for core in used if core.governor})
    if not governors:
        return DeviceCheck("governor", True, "the device does not tell (no frequency scaling, or not ours to see)")
    found = ", ".join(governors)
    if governors == ["performance"]:
        return DeviceCheck("governor", True, found)
    if device.performance_mode:
        return DeviceCheck("governor", True, f"{found}; performance is asked for while the device is in use")
    fix = "Set performance_mode = true in the inventory, or the governor on the device: frequencies move the times."
    return DeviceCheck("governor", False, found, fix)


def _temperature(sense: DeviceSense) -> DeviceCheck:
    zones = [zone for zone in sense.temperatures if -20 < zone.celsius < 150]
    if not zones:
        return DeviceCheck("temperature", True, "the device has no sensor to read")
    hottest = max(zones, key=lambda zone: zone.celsius)
    found = f"{hottest.celsius:.0f} °C ({hottest.type or f'zone {hottest.zone}'})"
    passed = hottest.celsius <= HIGHEST_CELSIUS
    fix = "" if passed else f"Cool it below {HIGHEST_CELSIUS:.0f} °C: a hot processor slows down."
    return DeviceCheck("temperature", passed, found, fix)


def _canary(times_s: Sequence[float]) -> DeviceCheck:
    """The same short work again and again must take the same time."""
    spread = max(times_s) / min(times_s) - 1
    found = f"{1e3 * min(times_s):.2f} ms, {100 * spread:.1f} % spread"
    if spread <= LARGEST_CANARY_SPREAD:
        return DeviceCheck("steady speed", True, found)
    fix = (
        f"At most {100 * LARGEST_CANARY_SPREAD:.0f} % are wanted: end other programs, let it cool, choose `cores` of "
        "one kind, or use the performance governor."
    )
    return DeviceCheck("steady speed", False, found, fix)


def _clock(before: _Reading, after: _Reading) -> DeviceCheck:
    """Seconds there must be seconds here; when within its call a reading was taken is not known."""
    if before.sense.boot != after.sense.boot:
        return DeviceCheck("clock", False, "the device was switched off and on meanwhile", "Check its power supply.")
    there_s = after.sense.uptime_s - before.sense.uptime_s
    shortest_s, longest_s = after.begin_s - before.end_s, after.end_s - before.begin_s
    if shortest_s * (1 - LARGEST_CLOCK_ERROR) <= there_s <= longest_s * (1 + LARGEST_CLOCK_ERROR):
        return DeviceCheck("clock", True, "runs as fast as this machine's")
    found = f"{there_s:.2f} s passed there in {shortest_s:.2f} to {longest_s:.2f} s here"
    return DeviceCheck("clock", False, found, "Its times cannot be trusted: choose another clock source, or device.")


def _read(reached: CheckedDevice) -> _Reading:
    begin_s = time.monotonic()
    sense = reached.sense()
    return _Reading(sense, begin_s, time.monotonic())
