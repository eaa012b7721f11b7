"""Checks whether a device is fit to time kernels on, each with its fix."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from halide_autotune.devices.health.probe import DeviceSense
from halide_autotune.devices.inventory.inventory import InventoryDevice
from halide_autotune.sdk.checks.check import Check
from halide_autotune.sdk.display.quantities import duration_text
from halide_autotune.sdk.inventory.device_access import ReachedDevice
from halide_autotune.sdk.inventory.device_facts import cores_text
from halide_autotune.targets.errors import SdkError

SMALLEST_FREE_BYTES = 256 * 1024**2
HIGHEST_CELSIUS = 75.0
LARGEST_CANARY_SPREAD = 0.05
LARGEST_CLOCK_ERROR = 0.02
_CANARY_REPEATS = 5
_CLOCK_SPAN_S = 1.0
_MIB = 1024**2


@dataclass(frozen=True)
class _Reading:
    sense: DeviceSense
    begin_s: float
    end_s: float


def check_device(
    device: InventoryDevice,
    reach: Callable[[], AbstractContextManager[ReachedDevice]],
    show: Callable[[str], None],
) -> list[Check]:
    """Run all checks, or only the connection's if it fails. Takes a few seconds.

    Args:
        reach: connects; raises SdkError.
        show: called with what is going on.
    """
    show(f"{device.name}: connecting …")
    begin_s = time.monotonic()
    with ExitStack() as stack:
        try:
            reached = stack.enter_context(reach())
        except SdkError as error:
            return [Check("connection", False, error.message, error.next_step)]
        connected = f"{device.transport} to {device.place.address.describe()} in {time.monotonic() - begin_s:.1f} s"
        checks = [Check("connection", True, connected)]
        try:
            # If one of them raises, the results before it stay in the list.
            checks.extend(_checks_over(device, reached, show))
        except SdkError as error:
            checks.append(Check("answer", False, error.message, error.next_step))
    return checks


def _checks_over(device: InventoryDevice, reached: ReachedDevice, show: Callable[[str], None]) -> Iterator[Check]:
    show(f"{device.name}: state …")
    before = _read(reached)
    yield Check("agent", True, "runs on the device")
    yield _storage(before.sense)
    yield _lease(device, reached)
    yield from _cores(device, before.sense)
    if not device.emulated:
        yield _governor(device, before.sense)
        show(f"{device.name}: speed …")
        yield _canary([reached.canary_s() for _ in range(_CANARY_REPEATS)])
    time.sleep(max(0.0, _CLOCK_SPAN_S - (time.monotonic() - before.end_s)))
    after = _read(reached)
    yield _temperature(after.sense)
    yield _clock(before, after)


def _storage(sense: DeviceSense) -> Check:
    free = f"{sense.free_bytes / _MIB:.0f} MiB free"
    if sense.free_bytes >= SMALLEST_FREE_BYTES:
        return Check("storage", True, free)
    fix = f"Free {SMALLEST_FREE_BYTES // _MIB} MiB, or set `folder` to a path on another file system."
    return Check("storage", False, free, fix)


def _lease(device: InventoryDevice, reached: ReachedDevice) -> Check:
    leases = reached.leases()
    foreign = [lease for lease in leases if not reached.holds(lease)]
    if not foreign:
        return Check("lease", True, "held by you" if leases else "free")
    holder = foreign[0]
    found = f"held by {holder.owner} for {duration_text(holder.since_s)}"
    wait = duration_text(holder.expires_in_s)
    fix = f"Wait {wait} until it ends, or take it with `sdk devices lease {device.name} --force`."
    return Check("lease", False, found, fix)


def _cores(device: InventoryDevice, sense: DeviceSense) -> Iterator[Check]:
    if device.place.cores:
        missing = [core for core in device.place.cores if core not in {core.core for core in sense.cores}]
        text = cores_text(sorted(device.place.cores))
        if missing:
            yield Check("cores", False, f"there is no core {missing[0]}", "Correct `cores` in the inventory.")
        else:
            yield Check("cores", True, text)
    if sense.load_1m is not None:
        count = max(1, len(sense.cores))
        passed = sense.load_1m <= max(1.0, 0.5 * count)
        fix = "" if passed else "Stop other programs on the device: they disturb the times."
        yield Check("load", passed, f"{sense.load_1m:.1f} on {count} cores in the last minute", fix)


def _governor(device: InventoryDevice, sense: DeviceSense) -> Check:
    used = [core for core in sense.cores if not device.place.cores or core.core in device.place.cores]
    governors = sorted({core.governor for core in used if core.governor})
    if not governors:
        return Check("governor", True, "unknown (the device has no frequency scaling, or does not show it)")
    found = ", ".join(governors)
    if governors == ["performance"]:
        return Check("governor", True, found)
    if device.place.performance_mode:
        return Check("governor", True, f"{found}; a run requests performance while it uses the device")
    fix = "Set performance_mode = true in the inventory, or the performance governor on the device."
    return Check("governor", False, found, fix)


def _temperature(sense: DeviceSense) -> Check:
    zones = [zone for zone in sense.temperatures if -20 < zone.celsius < 150]
    if not zones:
        return Check("temperature", True, "the device has no readable sensor")
    hottest = max(zones, key=lambda zone: zone.celsius)
    found = f"{hottest.celsius:.0f} °C ({hottest.type or f'zone {hottest.zone}'})"
    passed = hottest.celsius <= HIGHEST_CELSIUS
    fix = "" if passed else f"Let it cool below {HIGHEST_CELSIUS:.0f} °C: a hot processor slows down."
    return Check("temperature", passed, found, fix)


def _canary(times_s: Sequence[float]) -> Check:
    """The same piece of work must take the same time again and again."""
    spread = max(times_s) / min(times_s) - 1
    found = f"{1e3 * min(times_s):.2f} ms, {100 * spread:.1f} % spread"
    if spread <= LARGEST_CANARY_SPREAD:
        return Check("steady speed", True, found)
    fix = (
        f"It should be at most {100 * LARGEST_CANARY_SPREAD:.0f} %: stop other programs, let the device cool, choose "
        "`cores` of one kind, or use the performance governor."
    )
    return Check("steady speed", False, found, fix)


def _clock(before: _Reading, after: _Reading) -> Check:
    """A second on the device must be a second here; a reading is taken at an unknown moment within its call."""
    if before.sense.boot != after.sense.boot:
        return Check("clock", False, "the device restarted during the check", "Check its power supply.")
    there_s = after.sense.uptime_s - before.sense.uptime_s
    shortest_s, longest_s = after.begin_s - before.end_s, after.end_s - before.begin_s
    if shortest_s * (1 - LARGEST_CLOCK_ERROR) <= there_s <= longest_s * (1 + LARGEST_CLOCK_ERROR):
        return Check("clock", True, "runs at the rate of this machine's")
    found = f"{there_s:.2f} s passed on the device in {shortest_s:.2f} to {longest_s:.2f} s here"
    return Check("clock", False, found, "Choose another clock source or another device: its times cannot be trusted.")


def _read(reached: ReachedDevice) -> _Reading:
    begin_s = time.monotonic()
    sense = reached.sense()
    return _Reading(sense, begin_s, time.monotonic())
