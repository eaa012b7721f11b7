"""From phones of the inventory to their DSPs, as devices of a Hexagon profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from devices.device import Clock, Device
from devices.inventory.inventory import InventoryDevice
from targets.errors import ToolchainError, UsageError
from targets.hexagon.device_runner import device_halide_target, open_hexagon_device_runner
from targets.hexagon.sdk import HEXAGON_SDK_OPTION, HEXAGON_SDK_VARIABLE, HexagonSdk
from targets.profile.profile import TargetProfile


def choose_dsps(
    entries: Sequence[tuple[InventoryDevice, str | None]],
    profile: TargetProfile,
    threads: int,
    sdk: HexagonSdk | None,
) -> tuple[Device, ...]:
    """The DSPs of phones. A phone's own profile, and what was probed of it, are its processor's, and say nothing here.

    Args:
        entries: the phones, each with the slot that is meant, if any. A phone has one DSP for all its slots: the first
            that is meant stands for it.
        sdk: whose run_main_on_hexagon runs programs on them.

    Raises:
        UsageError: no SDK is named, one lacks what is needed, or a device is no phone.
    """
    if sdk is None:
        raise UsageError(
            f"{entries[0][0].name} has a DSP that only Qualcomm's Hexagon SDK reaches, and none is named.",
            next_step=f"Name its folder with {HEXAGON_SDK_VARIABLE} or {HEXAGON_SDK_OPTION}, or use --device qemu.",
        )
    for entry, _ in entries:
        if entry.transport != "adb" or entry.emulated:
            what = "is emulated" if entry.emulated else "is reached over SSH"
            raise UsageError(
                f"{entry.name} {what}: programs are run on the DSPs of Android phones, over ADB.",
                next_step="Name a phone with --device, or use --device hexagon-sim.",
            )
    try:
        runner = open_hexagon_device_runner(sdk, profile.halide_target)
    except ToolchainError as error:
        raise UsageError(error.message, next_step=error.next_step) from error
    devices: dict[str, Device] = {}
    for entry, wanted in entries:
        name, place = next(slot for slot in entry.places() if wanted in (None, slot[0]))
        dsp = Device(name, entry.transport, profile.name, Clock.CYCLES, threads, False, place, dsp=runner)
        devices.setdefault(entry.name, dsp)
    return tuple(devices.values())


def device_profile(profile: TargetProfile) -> TargetProfile:
    """A Hexagon profile for devices, whose DSPs have a system."""
    return replace(profile, halide_target=device_halide_target(profile.halide_target))
