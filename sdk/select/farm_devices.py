"""From --device and --target to devices of a farm."""

from __future__ import annotations

from collections.abc import Sequence

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.device import FarmDevice
from halide_autotune.autotune_loop.farm.use import DeviceWish, FarmUse, names_device
from halide_autotune.autotune_loop.specification.options import DeviceOptions, FarmOptions, RunOptions
from halide_autotune.devices.device import Device
from halide_autotune.devices.inventory.inventory import fitted_profile
from halide_autotune.devices.local.open_device import DEVICE_KINDS
from halide_autotune.sdk.inventory.connections import connection_settings
from halide_autotune.sdk.select.chosen_devices import ChosenDevices
from halide_autotune.sdk.select.device_choice import DeviceChoice, device_threads
from halide_autotune.sdk.select.farm_choice import choose_farm, named_scheduler
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError, UsageError
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.profile.target_features import with_target_features
from halide_autotune.targets.values.checks import nearest_hint

# What --scheduler takes to keep a run on this machine, whatever sdk.toml and SDK_SCHEDULER say.
NO_FARM = "none"


def wanted_farm(farm: FarmOptions, devices: DeviceOptions, settings: Settings) -> FarmAddress | None:
    """Return the farm that a run is for; None for this machine and its inventory.

    A farm that is only known from SDK_SCHEDULER or `sdk.toml` gives way to devices that are no farm's.

    Raises:
        UsageError: no address, or a farm and devices that are not of it are both asked for.
    """
    if farm.scheduler == NO_FARM:
        return None
    local = next((name for name in devices.device if name in DEVICE_KINDS), "")
    elsewhere = "--inventory" if devices.inventory is not None else local
    if elsewhere:
        if farm.scheduler is not None:
            raise UsageError(
                f"{elsewhere} names devices that are not the farm's.", next_step="Leave it or --scheduler out."
            )
        return None
    if named_scheduler(farm.scheduler, settings) is None:
        return None
    return choose_farm(farm.scheduler, farm.farm_certificates, settings)


def find_farm_devices(address: FarmAddress, options: RunOptions, title: str, settings: Settings) -> ChosenDevices:
    """Return the farm's devices for --target and --device; without a target, the one that the devices have.

    Args:
        title: what is tuned, for people.

    Raises:
        UsageError: a device is not in the farm, or they have different profiles or clocks; the target is a DSP, or has
            no such features; or an option is for this machine.
        DeviceError: the farm has no device of the profile.
        FarmError: the farm cannot be used.
        ProfileError: as `load_profile`.
    """
    asked = options.devices
    if asked.clock is not None:
        raise UsageError(
            "--clock is for this machine's emulator, and this run uses a farm's devices.",
            next_step="Leave --clock out, or time on this machine with --scheduler none.",
        )
    if asked.hexagon_sdk_root is not None:
        raise UsageError(
            "--hexagon-sdk-root is for this machine, and this run uses a farm's devices.",
            next_step="Leave --hexagon-sdk-root out, or time on this machine with --scheduler none.",
        )
    target, words = asked.target, asked.device
    # Imported here: Dask costs half a second that a wrong argument need not pay.
    from halide_autotune.autotune_loop.farm.client import farm_client
    from halide_autotune.autotune_loop.farm.state import farm_state

    known = None if target is None else _processor_profile(target, settings)
    with farm_client(address) as client:
        offered = [row.device for row in farm_state(client).devices]
    named = _named(words, offered, address)
    profile = known or _processor_profile(_only_profile(named, address), settings)
    found = [device for device in named if device.profile_name == profile.name]
    if words and len(found) < len(named):
        other = next(device for device in named if device.profile_name != profile.name)
        raise UsageError(
            f"{other.name} has profile {other.profile_name}, not {profile.name}.",
            next_step=f"Use --target {other.profile_name}, or another --device.",
        )
    if not found:
        there = ", ".join(f"{device.name} ({device.profile_name})" for device in offered) or "none at all"
        raise DeviceError(
            f"The farm of {address.address} has no device of {profile.name}; it has: {there}.",
            next_step="Start `sdk farm worker` where such a device is, or run on this machine with `--scheduler none`.",
        )
    if len({device.clock for device in found}) > 1:
        raise UsageError(
            "Emulated and real devices cannot share a run: their times do not compare.",
            next_step="Name some with --device.",
        )
    profile = with_target_features(profile, asked.target_features)
    profile = fitted_profile(profile, found[0].machine, found[0].core_count)
    plan_for = asked.parallelism or profile.machine.parallelism
    threads = device_threads(profile, plan_for)
    devices = tuple(
        Device(device.name, device.kind, profile.name, device.clock, threads, uses_host_cores=False) for device in found
    )
    wish = DeviceWish(profile.name, words, found[0].clock)
    owner = connection_settings(settings).lease_owner
    use = FarmUse(address, wish, options.farm.priority, owner, title, options.limits.build_jobs or 0)
    note = f"Timing on {', '.join(device.name for device in devices)}, of the farm of {address.address}."
    return ChosenDevices(DeviceChoice(devices, profile, plan_for, note=note), None, lambda name, trouble: None, use)


def _processor_profile(name: str, settings: Settings) -> TargetProfile:
    profile = load_profile(name, settings.profile_folder)
    if profile.is_hexagon:
        raise UsageError(
            f"A farm runs programs on processors, and {profile.name} is for a DSP.",
            next_step="Time with --scheduler none: on this machine, or on the DSP of a phone of your inventory.",
        )
    return profile


def _named(words: Sequence[str], offered: Sequence[FarmDevice], address: FarmAddress) -> list[FarmDevice]:
    """The devices that are named, or all."""
    for word in words:
        if not any(names_device(word, device) for device in offered):
            hint = nearest_hint(word, [device.name for device in offered])
            raise UsageError(
                f"There is no device {word[:80]!r} in the farm of {address.address}{hint}.",
                next_step="`sdk farm status` lists them.",
            )
    return [device for device in offered if not words or any(names_device(word, device) for word in words)]


def _only_profile(devices: Sequence[FarmDevice], address: FarmAddress) -> str:
    profiles = sorted({device.profile_name for device in devices})
    if len(profiles) == 1:
        return profiles[0]
    if not profiles:
        raise DeviceError(
            f"The farm of {address.address} has no device.", next_step="`sdk farm status` shows who has joined."
        )
    raise UsageError(
        f"The farm of {address.address} has devices of {', '.join(profiles)}.", next_step="Choose one with --target."
    )
