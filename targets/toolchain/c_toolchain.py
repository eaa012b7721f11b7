"""The C toolchain of each profile."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.targets.hexagon.sdk import HexagonSdk, dsp_version_of, runs_on_devices
from halide_autotune.targets.hexagon.toolchain import HexagonToolchain
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.profile.profile import ANDROID_TRIPLES, TOOLCHAINS, TargetProfile
from halide_autotune.targets.toolchain.ndk import NDK_VARIABLES, NdkToolchain
from halide_autotune.targets.toolchain.packaged_toolchain import open_packaged_toolchain
from halide_autotune.targets.toolchain.zig import ZigToolchain

ANDROID_KIND, ZIG_KIND = "android", "zig"
_NO_NDK = f"{NDK_VARIABLES[0]} is not set"


def open_toolchain(
    profile: TargetProfile, cache_folder: Path, ndk_root: Path | None, hexagon_sdk: HexagonSdk | None = None
) -> CToolchain:
    """Return the toolchain of a profile; for `android` the NDK if there is one, else zig's static musl.

    Nothing is started: a missing or broken toolchain raises ToolchainError when it is used, a package's at once.

    Args:
        ndk_root: the Android NDK's folder; None if there is none, or if its programs would not run.
        hexagon_sdk: builds a Hexagon profile with its tools; None builds for Linux, and so for QEMU.
    """
    if hexagon_sdk is not None:
        version = dsp_version_of(profile.halide_target)
        for_devices = runs_on_devices(profile.halide_target)
        return HexagonToolchain(hexagon_sdk, version, cache_folder / "hexagon", for_devices)
    choice = profile.toolchain
    if choice.kind == ANDROID_KIND and choice.android_api_level is not None and ndk_root is not None:
        triple = ANDROID_TRIPLES[choice.triple.partition("-")[0]]
        return NdkToolchain(ndk_root, triple, choice.android_api_level, cache_folder / "ndk")
    if choice.kind not in TOOLCHAINS.built_in:
        return open_packaged_toolchain(choice, cache_folder)
    flags = () if choice.cpu is None else (f"-mcpu={choice.cpu}",)
    return ZigToolchain(choice.triple, cache_folder / "zig", extra_flags=flags)


def fallback_notice(profile: TargetProfile, ndk_root: Path | None, *, runs_here: bool) -> str:
    """Return a message if an Android profile is measured without bionic; empty otherwise.

    Args:
        runs_here: programs run on this machine, natively or emulated, which has no bionic.
    """
    if profile.toolchain.kind != ANDROID_KIND:
        return ""
    linked = "Programs are linked with static musl, which allocates memory differently from a phone's C library"
    if runs_here:
        return f"{linked}. Programs of an Android NDK do not run on this machine."
    if ndk_root is None:
        return f"{linked}. To use an Android NDK, set {NDK_VARIABLES[0]} to its folder."
    return ""


def describe_toolchains(profile: TargetProfile, cache_folder: Path, ndk_root: Path | None) -> str:
    """Return which toolchain builds for the profile; for Android those for phones and for the emulator.

    Raises:
        ToolchainError: one of them is missing or broken.
    """
    here = open_toolchain(profile, cache_folder, None).describe()
    if profile.toolchain.kind != ANDROID_KIND:
        return here
    if ndk_root is None:
        return f"{here} ({_NO_NDK})"
    return f"{open_toolchain(profile, cache_folder, ndk_root).describe()}; for the emulator {here}"
