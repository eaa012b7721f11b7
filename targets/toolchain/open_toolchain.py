"""From a profile to the C toolchain that links for it."""

from __future__ import annotations

from pathlib import Path

from targets.hexagon.device_runner import runs_on_devices
from targets.hexagon.sdk import HexagonSdk, dsp_version_of
from targets.hexagon.toolchain import HexagonToolchain
from targets.profile.android import ANDROID_TRIPLES, NDK_VARIABLES
from targets.profile.profile import TargetProfile
from targets.toolchain.c_toolchain import CToolchain
from targets.toolchain.ndk import NdkToolchain
from targets.toolchain.zig import ZigToolchain

ANDROID_KIND = "android"


def open_toolchain(
    profile: TargetProfile, cache_folder: Path, ndk_root: Path | None, hexagon_sdk: HexagonSdk | None = None
) -> CToolchain:
    """The toolchain that the profile asks for; for `android` the NDK where there is one, else zig's static musl.

    Nothing is started: a missing or broken toolchain raises ToolchainError where it is used.

    Args:
        ndk_root: the Android NDK's folder; None where there is none, or where its programs would not run.
        hexagon_sdk: for a Hexagon profile, to build with its tools; None builds for Linux, and so for QEMU.
    """
    if hexagon_sdk is not None:
        version = dsp_version_of(profile.halide_target)
        for_devices = runs_on_devices(profile.halide_target)
        return HexagonToolchain(hexagon_sdk, version, cache_folder / "hexagon", for_devices)
    choice = profile.toolchain
    if choice.kind == ANDROID_KIND and choice.android_api_level is not None and ndk_root is not None:
        triple = ANDROID_TRIPLES[choice.triple.partition("-")[0]]
        return NdkToolchain(ndk_root, triple, choice.android_api_level, cache_folder / "ndk")
    flags = () if choice.cpu is None else (f"-mcpu={choice.cpu}",)
    return ZigToolchain(choice.triple, cache_folder / "zig", extra_flags=flags)


def fallback_notice(profile: TargetProfile, ndk_root: Path | None, *, runs_here: bool) -> str:
    """A message for who measures an Android profile without bionic; empty where there is nothing to say.

    Args:
        runs_here: programs run on this machine, natively or emulated, where there is no bionic.
    """
    if profile.toolchain.kind != ANDROID_KIND:
        return ""
    linked = "Programs are linked with static musl, which allocates memory in another way than a phone's C library"
    if runs_here:
        return f"{linked}: those of an Android NDK do not run on this machine."
    if ndk_root is None:
        return f"{linked}: {NDK_VARIABLES[0]} names no Android NDK."
    return ""


def describe_toolchains(profile: TargetProfile, cache_folder: Path, ndk_root: Path | None) -> str:
    """Which toolchain is used for the profile, or which for phones and which for this machine.

    Raises:
        ToolchainError: one of them is missing or broken.
    """
    here = open_toolchain(profile, cache_folder, None).describe()
    if profile.toolchain.kind != ANDROID_KIND:
        return here
    if ndk_root is None:
        return f"{here} ({NDK_VARIABLES[0]} names no Android NDK)"
    return f"{open_toolchain(profile, cache_folder, ndk_root).describe()}; for the emulator {here}"
