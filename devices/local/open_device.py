"""From a profile to the device that stands for it on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from devices.device import Clock, Device
from devices.local.host_transport import HostTransport
from devices.transport import Transport
from targets.build.simulated_clock_plugin import simulated_clock_arguments
from targets.errors import DeviceError, EmulatorError, UsageError
from targets.hexagon.runners import HEXAGON_SIMULATOR, open_hexagon_simulator
from targets.hexagon.sdk import HEXAGON_SDK_VARIABLE, HexagonSdk
from targets.profile.host_probe import HostMachine, lacking_features
from targets.profile.profile import EmulatorChoice, TargetProfile

DEVICE_KINDS = ("local", "qemu", HEXAGON_SIMULATOR)
_KERNEL_MEMORY_BYTES = 8 * 2**30
# Features of Halide targets that no emulator of programs has.
_NOT_EMULATED = ("avx512", "avx10", "cuda")
# Of programs by the simulated clock: what they find on their stack has to be equal in every run.
_GUEST_ENVIRONMENT: Mapping[str, str] = {"LC_ALL": "C"}
_HALIDE_ARCHITECTURES = {"x86_64": "x86-64", "aarch64": "arm-64", "riscv64": "riscv-64"}


def choose_device(
    profile: TargetProfile,
    kind: str | None,
    parallelism: int,
    host: HostMachine,
    hexagon_sdk: HexagonSdk | None = None,
) -> Device:
    """The device to time on: the one asked for, else the profile's default.

    Args:
        kind: 'local', 'qemu', 'hexagon-sim' or None.
        parallelism: threads a kernel runs with.
        hexagon_sdk: for a Hexagon profile, whose default is its simulator then.

    Raises:
        UsageError: no such device.
        DeviceError: the device cannot run the profile's code.
        EmulatorError: the emulator is missing.
        ToolchainError: the SDK has no simulator, or none for the profile.
    """
    kind = kind or (HEXAGON_SIMULATOR if hexagon_sdk is not None else profile.device_kind)
    if kind not in DEVICE_KINDS:
        raise UsageError(f"There is no device {kind!r}; there are: {', '.join(DEVICE_KINDS)}.")
    if kind == HEXAGON_SIMULATOR:
        return _simulated_hexagon(profile, parallelism, hexagon_sdk)
    if kind == "qemu":
        emulator_command(profile)
        return Device("qemu", kind, profile.name, Clock.EMULATED, parallelism, uses_host_cores=True)
    _check_runs_here(profile, host)
    return Device("local", kind, profile.name, Clock.WALL, parallelism, uses_host_cores=True)


def open_transport(
    device: Device,
    profile: TargetProfile,
    parent_folder: Path,
    environment: Mapping[str, str],
    cores: frozenset[int] | None,
) -> Transport:
    """A transport to `device`, for one user at a time; close it after use.

    Raises:
        EmulatorError: the emulator is missing.
        DeviceError: no folder can be made for it.
    """
    launcher: tuple[str, ...] = ()
    arguments_mark: tuple[str, ...] = ()
    if device.kind == "qemu":
        launcher = emulator_command(profile)
    if device.simulator is not None:
        launcher, arguments_mark = device.simulator.command, device.simulator.arguments_mark
    if device.clock_plugin is not None:
        launcher += simulated_clock_arguments(device.clock_plugin, profile.machine, device.threads, marked=True)
        environment = _GUEST_ENVIRONMENT
    return HostTransport(parent_folder, environment, _KERNEL_MEMORY_BYTES, cores, launcher, arguments_mark)


def _simulated_hexagon(profile: TargetProfile, parallelism: int, sdk: HexagonSdk | None) -> Device:
    if not profile.is_hexagon:
        raise UsageError(
            f"{HEXAGON_SIMULATOR} runs code for Hexagon, and profile {profile.name} is for {profile.halide_target}.",
            next_step="Leave --device out, or choose a Hexagon --target.",
        )
    if sdk is None:
        raise UsageError(
            f"{HEXAGON_SIMULATOR} is of Qualcomm's Hexagon SDK, and none is named.",
            next_step=f"Set {HEXAGON_SDK_VARIABLE} to its folder, or use --device qemu.",
        )
    simulator = open_hexagon_simulator(sdk, profile.halide_target)
    return Device(
        HEXAGON_SIMULATOR,
        HEXAGON_SIMULATOR,
        profile.name,
        Clock.SIMULATED,
        parallelism,
        uses_host_cores=True,
        simulator=simulator,
    )


def emulator_command(profile: TargetProfile) -> tuple[str, ...]:
    """The command line that programs of the profile are put behind on this machine.

    Raises:
        UsageError: the profile names no emulator, or one that cannot run its code.
        EmulatorError: the emulator, or what it needs, is not installed.
    """
    unknown = [word for word in profile.halide_target.split("-") if word.startswith(_NOT_EMULATED)]
    if unknown:
        raise UsageError(
            f"QEMU cannot run code of profile {profile.name}: it knows no {unknown[0]}.",
            next_step="Leave --device out, or name a device that can.",
        )
    return _emulator_command(_emulator(profile))


def _emulator(profile: TargetProfile) -> EmulatorChoice:
    if profile.emulator is None:
        raise UsageError(
            f"Profile {profile.name} names no emulator, so the device qemu cannot run it.",
            next_step="Leave --device out, or add an [emulator] table to a profile of yours.",
        )
    return profile.emulator


def _emulator_command(emulator: EmulatorChoice) -> tuple[str, ...]:
    install = f"On Debian: apt-get install {' '.join(emulator.debian_packages)}"
    command = shutil.which(emulator.command) or shutil.which(emulator.command + "-static")
    if command is None:
        raise EmulatorError(f"The emulator {emulator.command} is not installed.", next_step=install)
    arguments = emulator.arguments
    if emulator.system_root is not None:
        if not Path(emulator.system_root).is_dir():
            raise EmulatorError(
                f"The system root {emulator.system_root} that {emulator.command} needs is not installed.",
                next_step=install,
            )
        arguments = ("-L", emulator.system_root, *arguments)
    return (command, *arguments)


def _check_runs_here(profile: TargetProfile, host: HostMachine) -> None:
    words = profile.halide_target.split("-")
    architecture = "-".join(words[:2])
    here = _HALIDE_ARCHITECTURES.get(host.architecture, host.architecture)
    if architecture != here:
        raise DeviceError(
            f"This machine is {here} and cannot run {architecture} code of profile {profile.name}.",
            next_step="Use --device qemu where the profile has an emulator, or another --target.",
        )
    missing = lacking_features(profile.halide_target, host)
    if missing:
        raise DeviceError(
            f"This machine's processor lacks {', '.join(missing)}, which profile {profile.name} uses.",
            next_step="Use --target host, which uses what this machine has.",
        )
