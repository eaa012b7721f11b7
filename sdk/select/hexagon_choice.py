"""Chooses Qualcomm's Hexagon SDK for a command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from halide_autotune.sdk.select.device_choice import DeviceChoice
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import ToolchainError, UsageError
from halide_autotune.targets.hexagon.sdk import (
    HEXAGON_SDK_OPTION,
    HEXAGON_SDK_VARIABLE,
    HexagonSdk,
    dsp_version_of,
    find_hexagon_sdk,
)
from halide_autotune.targets.profile.profile import TargetProfile


def named_hexagon_sdk(profile: TargetProfile, given: Path | None, settings: Settings) -> HexagonSdk | None:
    """Return the SDK for a Hexagon profile; None if none is named, and for other profiles.

    Args:
        given: the SDK's folder; None takes the one that the variable names.

    Raises:
        UsageError: the folder is not an SDK, or lacks the profile's DSP version; or it is given for another profile.
    """
    if not profile.is_hexagon:
        if given is None:
            return None  # the variable applies to Hexagon profiles only
        raise UsageError(
            f"{HEXAGON_SDK_OPTION} is for Hexagon profiles, and {profile.name} is for {profile.halide_target}.",
            next_step="Leave it out, or choose a Hexagon --target; `sdk targets` lists them.",
        )
    root = given or settings.hexagon_sdk_root
    if root is None:
        return None
    try:
        sdk = find_hexagon_sdk(root.absolute())
        sdk.check_dsp_version(dsp_version_of(profile.halide_target))
    except ToolchainError as error:
        raise UsageError(error.message, next_step=error.next_step) from error
    return sdk


def tell_of_sdk(choice: DeviceChoice, given: Path | None) -> DeviceChoice:
    """Return the choice with a note, if it is Qualcomm's simulator or a phone's DSP.

    Args:
        given: the SDK's folder, if the option gave it.

    Raises:
        UsageError: the option gave an SDK, and the device is neither its simulator nor a phone's DSP.
    """
    device = choice.devices[0]
    if device.hexagon_sdk is None:
        if given is None:
            return choice
        raise UsageError(
            f"{HEXAGON_SDK_OPTION} is for the SDK's simulator and phones' DSPs, and {device.name} is neither.",
            next_step="Leave out either it or --device.",
        )
    names_it = HEXAGON_SDK_OPTION if given is not None else HEXAGON_SDK_VARIABLE
    sdk = f"the Hexagon SDK {device.hexagon_sdk.describe()} (from {names_it})"
    if device.dsp is None:
        message = f"Timing on the simulator {device.name} of {sdk}; a processor cycle counts as a nanosecond."
    else:
        phones = ", ".join(each.name for each in choice.devices)
        message = f"Timing on the DSP of {phones} with {sdk}; a processor cycle counts as a nanosecond."
    return replace(choice, note=f"{choice.note} {message}".strip())
