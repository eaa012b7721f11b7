"""Chooses the devices that a command times on, from --device, the inventory and the profile."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.inventory.inventory import Inventory, InventoryDevice, machine_profile
from halide_autotune.devices.local.open_device import DEVICE_KINDS, choose_device
from halide_autotune.devices.remote_place import RemotePlace
from halide_autotune.targets.errors import ToolchainError, UsageError
from halide_autotune.targets.hexagon.runners import open_hexagon_device_runner
from halide_autotune.targets.hexagon.sdk import (
    HEXAGON_SDK_OPTION,
    HEXAGON_SDK_VARIABLE,
    HexagonSdk,
    device_halide_target,
)
from halide_autotune.targets.profile.host_probe import probe_host
from halide_autotune.targets.profile.profile import TargetProfile

# A slot of a device of the inventory: its device, its name and its place.
Slot = tuple[InventoryDevice, str, RemotePlace]


def choose_dsps(
    slots: Sequence[Slot], profile: TargetProfile, threads: int, sdk: HexagonSdk | None
) -> tuple[Device, ...]:
    """Return the DSPs of phones. The profile and the probe of a phone describe its processor, so they are not used.

    Args:
        slots: of the phones. A phone has one DSP for all its slots.
        sdk: the SDK whose run_main_on_hexagon runs programs on the DSPs.

    Raises:
        UsageError: there is no SDK, it lacks a part, or a device is not a phone.
    """
    if sdk is None:
        raise UsageError(
            f"Qualcomm's Hexagon SDK is needed to reach the DSP of {slots[0][0].name}.",
            next_step=f"Name its folder with {HEXAGON_SDK_VARIABLE} or {HEXAGON_SDK_OPTION}, or use --device qemu.",
        )
    for entry, _, _ in slots:
        if entry.transport != "adb" or entry.emulated:
            what = "is emulated" if entry.emulated else "is reached over SSH"
            raise UsageError(
                f"{entry.name} {what}. A DSP must be an Android phone's, reached over ADB.",
                next_step="Name a phone with --device, or use --device hexagon-sim.",
            )
    try:
        runner = open_hexagon_device_runner(sdk, profile.halide_target)
    except ToolchainError as error:
        raise UsageError(error.message, next_step=error.next_step) from error
    devices: dict[str, Device] = {}
    for entry, name, place in slots:
        dsp = Device(name, entry.transport, profile.name, Clock.CYCLES, threads, False, place, dsp=runner)
        devices.setdefault(entry.name, dsp)
    return tuple(devices.values())


def device_profile(profile: TargetProfile) -> TargetProfile:
    """Return a Hexagon profile for phones, whose DSPs run a system."""
    return replace(profile, halide_target=device_halide_target(profile.halide_target))


LABEL_PREFIX = "label:"


# Returns a reason for each slot that cannot be used now, by its name.
FindBusy = Callable[[Sequence[InventoryDevice]], dict[str, str]]


@dataclass(frozen=True)
class DeviceChoice:
    """What a command times on.

    Attributes:
        devices: at least one, all with the same clock.
        profile: the target profile, with the machine parameters that were probed on the first device.
        parallelism: threads, or multiprocessors of a card, that schedules are made for.
        entries: the devices' entries of the inventory; none for this machine.
        note: why these devices were chosen, if the user did not name them; may be empty.
    """

    devices: tuple[Device, ...]
    profile: TargetProfile
    parallelism: int
    entries: tuple[InventoryDevice, ...] = ()
    note: str = ""


def profile_of_devices(names: Sequence[str], inventory: Inventory) -> str | None:
    """Return the profile of the named devices; None if they are kinds (local, qemu) or none is named.

    Raises:
        UsageError: a device or label is not in the inventory, or they have different profiles.
    """
    entries = dict.fromkeys(entry for entry, _, _ in _named(names, inventory))
    profiles = {entry.profile_name for entry in entries}
    if len(profiles) > 1:
        each = ", ".join(f"{entry.name} has {entry.profile_name}" for entry in entries)
        raise UsageError(f"The devices have different profiles ({each}).", next_step="Choose devices of one profile.")
    return profiles.pop() if profiles else None


def choose_devices(
    names: Sequence[str],
    profile: TargetProfile,
    parallelism: int | None,
    inventory: Inventory,
    busy: FindBusy,
    hexagon_sdk: HexagonSdk | None = None,
) -> DeviceChoice:
    """Return the named devices, else the free ones of the inventory with the profile, else the profile's own kind.

    Args:
        names: 'local', 'qemu', 'hexagon-sim', names of devices, or label:LABEL.
        parallelism: threads; None takes the device's.
        busy: asks devices which of their slots cannot be used.
        hexagon_sdk: for a Hexagon profile, times on its simulator, or on the DSP of a named phone.

    Raises:
        UsageError: no such device; one with another profile or clock; or a parallelism below one.
        DeviceError, EmulatorError, ToolchainError: this machine cannot run the profile's code.
    """
    if parallelism is not None and parallelism < 1:
        raise UsageError(f"--parallelism must be at least 1, not {parallelism}.")
    kinds = [name for name in names if name in DEVICE_KINDS]
    if kinds:
        if len(names) > 1:
            raise UsageError(
                f"--device {kinds[0]} cannot be combined with another device: their times do not compare.",
                next_step=f"Give --device {kinds[0]} alone, or only devices of the inventory.",
            )
        return _of_this_machine(kinds[0], profile, parallelism, hexagon_sdk)
    if names:
        return _remote(_named(names, inventory), profile, parallelism, hexagon_sdk)
    return _free(profile, parallelism, inventory, busy, hexagon_sdk)


def _free(
    profile: TargetProfile,
    parallelism: int | None,
    inventory: Inventory,
    busy: FindBusy,
    hexagon_sdk: HexagonSdk | None,
) -> DeviceChoice:
    # A DSP is reached through the SDK only.
    reached = not profile.is_hexagon or hexagon_sdk is not None
    fitting = [entry for entry in inventory.devices if reached and entry.profile_name == profile.name]
    reasons = busy(fitting) if fitting else {}
    slots = [(entry, name, place) for entry in fitting for name, place in entry.places() if name not in reasons]
    left_out = "; ".join(f"{name} ({reason.rstrip('.')})" for name, reason in reasons.items())
    if slots and len({entry.emulated for entry, _, _ in slots}) == 1:
        choice = _remote(slots, profile, parallelism, hexagon_sdk)
        names = ", ".join(device.name for device in choice.devices)
        note = f"Timing on {names}, free in {inventory.file.name}." + (f" Left out: {left_out}." if left_out else "")
        return replace(choice, note=note)
    choice = _of_this_machine(None, profile, parallelism, hexagon_sdk)
    place = "the emulator" if choice.devices[0].is_emulated else "this machine"
    if choice.devices[0].simulator is not None:
        place = choice.devices[0].name
    if slots:
        why = f"some free devices of {profile.name} are emulated and some are not; choose with --device"
    elif reasons:
        why = f"no device of {profile.name} is free: {left_out}"
    elif choice.devices[0].is_emulated:
        why = f"no device of {profile.name} is in the inventory"
    else:
        return choice
    return replace(choice, note=f"Timing on {place}: {why}.")


def _named(names: Sequence[str], inventory: Inventory) -> list[Slot]:
    """Return the named slots, each once; the name of a device, or a label, means all of its slots."""
    found: dict[str, Slot] = {}
    for name in names:
        if name in DEVICE_KINDS:
            continue
        label = name.removeprefix(LABEL_PREFIX)
        for entry in inventory.with_label(label) if label != name else (inventory.find_slots(name)[0],):
            places = dict(entry.places())
            for slot in [name] if name in places else places:
                found.setdefault(slot, (entry, slot, places[slot]))
    return list(found.values())


def _remote(
    slots: Sequence[Slot], profile: TargetProfile, parallelism: int | None, hexagon_sdk: HexagonSdk | None
) -> DeviceChoice:
    entries = tuple(dict.fromkeys(entry for entry, _, _ in slots))
    if profile.is_hexagon:
        threads = parallelism or profile.machine.parallelism
        dsps = choose_dsps(slots, profile, threads, hexagon_sdk)
        return DeviceChoice(dsps, device_profile(profile), threads, entries)
    for entry in entries:
        if entry.profile_name != profile.name:
            raise UsageError(
                f"{entry.name} has profile {entry.profile_name}, not {profile.name}.",
                next_step=f"Use --target {entry.profile_name}, or another --device.",
            )
    if len({entry.emulated for entry in entries}) > 1:
        raise UsageError(
            "Emulated and real devices cannot share a run: their times do not compare.",
            next_step="Name devices of one kind with --device.",
        )
    fitted = machine_profile(profile, entries[0])
    plan_for = parallelism or fitted.machine.parallelism
    threads = device_threads(profile, plan_for)
    clock = Clock.EMULATED if entries[0].emulated else Clock.WALL
    devices = [
        Device(name, entry.transport, profile.name, clock, threads, False, place) for entry, name, place in slots
    ]
    return DeviceChoice(tuple(devices), fitted, plan_for, entries)


def _of_this_machine(
    kind: str | None, profile: TargetProfile, parallelism: int | None, hexagon_sdk: HexagonSdk | None
) -> DeviceChoice:
    """Return this machine or its emulator; on this machine its own cores count, not the profile's."""
    if parallelism is None:
        parallelism = parallelism_here(kind or profile.device_kind, profile)
    device = choose_device(profile, kind, device_threads(profile, parallelism), probe_host(), hexagon_sdk)
    return DeviceChoice((device,), profile, parallelism)


def parallelism_here(kind: str, profile: TargetProfile) -> int:
    """How many threads schedules are made for that this machine times, or its emulator: its own cores at most."""
    most = profile.machine.parallelism
    return min(most, len(os.sched_getaffinity(0))) if kind == "local" and profile.machine.gpu is None else most


def device_threads(profile: TargetProfile, parallelism: int) -> int:
    """Return the threads of the processor, which only launches kernels if there is a card."""
    return parallelism if profile.machine.gpu is None else 1
