"""For a device that is emulated on this machine: the clock that its times are measured with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from devices.device import Clock, Device
from devices.local.open_device import emulator_command
from sdk.select.device_choice import DeviceChoice
from sdk.settings import Settings
from targets.build.simulated_clock_plugin import build_simulated_clock, check_emulator, simulated_clock_arguments
from targets.errors import EmulatorError, ProfileError, SdkError, ToolchainError, UsageError
from targets.process.content_cache import ContentCache
from targets.profile.host_probe import probe_host, usable_memory_bytes
from targets.profile.profile import TargetProfile

# What one emulated program may take for images and for itself, before so many at once would want more than there is.
_PROGRAM_BYTES = 2 * 2**30
EMULATOR_CLOCKS = (Clock.SIMULATED.value, Clock.EMULATED.value)


def fit_clock(choice: DeviceChoice, wanted: str | None, settings: Settings) -> DeviceChoice:
    """The choice with the clock of its emulator; unchanged where the devices are not emulated here.

    Args:
        wanted: 'simulated' or 'emulated'; None takes the simulated clock where it can be had, and says so where not.

    Raises:
        UsageError: a clock is asked for that does not exist, or that the devices do not have.
        ToolchainError, EmulatorError, ProfileError: the simulated clock is asked for and cannot be had.
    """
    if wanted is not None and wanted not in EMULATOR_CLOCKS:
        raise UsageError(f"There is no clock {wanted!r}; there are: {', '.join(EMULATOR_CLOCKS)}.")
    device = choice.devices[0]
    if device.kind != "qemu":
        if wanted is not None:
            raise UsageError(
                f"--clock chooses the clock of this machine's emulator, and {device.name} is another device.",
                next_step="Leave --clock out, or add --device qemu.",
            )
        return choice
    if wanted == Clock.EMULATED.value:
        return choice
    try:
        plugin = _plugin(device, choice.profile, settings)
    except (ToolchainError, EmulatorError, ProfileError, UsageError) as error:
        if wanted is not None:
            raise
        return replace(choice, note=f"{choice.note} {_fallback(error)}".strip())
    simulated = replace(device, clock=Clock.SIMULATED, clock_plugin=plugin, at_once=_programs_at_once())
    return replace(choice, devices=(simulated,))


def _programs_at_once() -> int:
    """One for each core: simulated time stands while another program has the core."""
    return max(1, min(probe_host().logical_cores, usable_memory_bytes() // _PROGRAM_BYTES))


def _plugin(device: Device, profile: TargetProfile, settings: Settings) -> Path:
    check_emulator(emulator_command(profile)[0], settings.environment)
    plugin = build_simulated_clock(settings.environment, ContentCache(settings.cache_folder))
    simulated_clock_arguments(plugin, profile.machine, device.threads)  # refuses what cannot be simulated
    return plugin


def _fallback(error: SdkError) -> str:
    return f"Times are the emulator's own, which rank schedules badly: {error.message}"
