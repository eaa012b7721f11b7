"""The clock for a device that is emulated on this machine."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.devices.device import Clock
from halide_autotune.devices.local.open_device import emulator_command
from halide_autotune.sdk.select.device_choice import DeviceChoice
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.simulated_clock_plugin import (
    build_simulated_clock,
    check_emulator,
    simulated_clock_arguments,
)
from halide_autotune.targets.errors import EmulatorError, ProfileError, ToolchainError, UsageError
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.host_probe import probe_host, usable_memory_bytes

# Memory for one emulated program and its images; it limits how many run at once.
_PROGRAM_BYTES = 2 * 2**30
EMULATOR_CLOCKS = (Clock.SIMULATED.value, Clock.EMULATED.value)


def fit_clock(choice: DeviceChoice, wanted: str | None, settings: Settings) -> DeviceChoice:
    """Return the choice with the clock of its emulator; unchanged if the devices are not emulated here.

    Args:
        wanted: 'simulated' or 'emulated'; None takes the simulated clock if it works, else adds a note that says why.

    Raises:
        UsageError: there is no such clock, or the devices do not have it.
        ToolchainError, EmulatorError, ProfileError: the simulated clock was asked for and does not work.
    """
    if wanted is not None and wanted not in EMULATOR_CLOCKS:
        raise UsageError(f"There is no clock {wanted!r}.", next_step=f"Choose one of: {', '.join(EMULATOR_CLOCKS)}.")
    device = choice.devices[0]
    if device.kind != "qemu":
        if wanted is not None:
            raise UsageError(
                f"--clock is for this machine's emulator only, and {device.name} is another device.",
                next_step="Leave --clock out, or add --device qemu.",
            )
        return choice
    if wanted == Clock.EMULATED.value:
        return choice
    try:
        emulator = emulator_command(choice.profile)[0]
        check_emulator(emulator, settings.environment)
        plugin = build_simulated_clock(settings.environment, ContentCache(settings.cache_folder))
        # Raises for what cannot be simulated.
        simulated_clock_arguments(plugin, emulator, choice.profile.machine, device.threads)
    except (ToolchainError, EmulatorError, ProfileError, UsageError) as error:
        if wanted is not None:
            raise
        why = f"Times are the emulator's own, which rank schedules badly: {error}"
        return replace(choice, note=f"{choice.note} {why}".strip())
    simulated = replace(device, clock=Clock.SIMULATED, clock_plugin=plugin, at_once=_programs_at_once())
    return replace(choice, devices=(simulated,))


def _programs_at_once() -> int:
    """Return one for each core: simulated time stops while another program has the core."""
    return max(1, min(probe_host().logical_cores, usable_memory_bytes() // _PROGRAM_BYTES))
