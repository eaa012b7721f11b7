"""The devices of this machine: the one for a profile, and the transport to it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.local.host_transport import HostTransport
from halide_autotune.devices.transport import Transport
from halide_autotune.targets.build.simulated_clock_plugin import simulated_clock_arguments
from halide_autotune.targets.errors import DeviceError, EmulatorError, UsageError
from halide_autotune.targets.hexagon.runners import HEXAGON_SIMULATOR, HexagonSimulator, open_hexagon_simulator
from halide_autotune.targets.hexagon.sdk import HEXAGON_SDK_VARIABLE, HexagonSdk
from halide_autotune.targets.profile.host_probe import HostMachine, lacking_features
from halide_autotune.targets.profile.profile import TargetProfile

DEVICE_KINDS = ("local", "qemu", HEXAGON_SIMULATOR)
_KERNEL_MEMORY_BYTES = 8 * 2**30
# Features of Halide targets that QEMU's user mode does not have.
_NOT_EMULATED = ("avx512", "avx10", "cuda")
# With the simulated clock, the stack of a program must be the same in every run.
_SIMULATED_ENVIRONMENT: Mapping[str, str] = {"LC_ALL": "C"}
_HALIDE_ARCHITECTURES = {"x86_64": "x86-64", "aarch64": "arm-64", "riscv64": "riscv-64"}


def choose_device(
    profile: TargetProfile,
    kind: str | None,
    parallelism: int,
    host: HostMachine,
    hexagon_sdk: HexagonSdk | None = None,
) -> Device:
    """Return the device of this machine to time on: the one asked for, else the profile's default.

    Args:
        kind: 'local', 'qemu', 'hexagon-sim' or None.
        parallelism: threads a kernel runs with.
        hexagon_sdk: of a Hexagon profile; its simulator is the default then.

    Raises:
        UsageError: there is no such device.
        DeviceError: the device cannot run the profile's code.
        EmulatorError: the emulator is missing.
        ToolchainError: the SDK has no simulator, or none for the profile.
    """
    kind = kind or (HEXAGON_SIMULATOR if hexagon_sdk is not None else profile.device_kind)
    if kind not in DEVICE_KINDS:
        raise UsageError(f"There is no device {kind!r}; there are: {', '.join(DEVICE_KINDS)}.")
    clock, simulator = Clock.WALL, None
    if kind == HEXAGON_SIMULATOR:
        clock, simulator = Clock.SIMULATED, _open_simulator(profile, hexagon_sdk)
    elif kind == "qemu":
        clock = Clock.EMULATED
        emulator_command(profile)
    else:
        _check_runs_here(profile, host)
    return Device(kind, kind, profile.name, clock, parallelism, uses_host_cores=True, simulator=simulator)


def open_transport(
    device: Device,
    profile: TargetProfile,
    parent_folder: Path,
    environment: Mapping[str, str],
    cores: frozenset[int] | None,
) -> Transport:
    """Return a transport to `device`, for one user at a time; close it after use.

    Raises:
        EmulatorError: the emulator is missing.
        DeviceError: its folder cannot be made.
    """
    launcher: tuple[str, ...] = ()
    arguments_mark: tuple[str, ...] = ()
    if device.kind == "qemu":
        launcher = emulator_command(profile)
    if device.simulator is not None:
        launcher, arguments_mark = device.simulator.command, device.simulator.arguments_mark
    if device.clock_plugin is not None:
        machine, threads = profile.machine, device.threads
        launcher += simulated_clock_arguments(device.clock_plugin, launcher[0], machine, threads, marked=True)
        environment = _SIMULATED_ENVIRONMENT
    return HostTransport(parent_folder, environment, _KERNEL_MEMORY_BYTES, cores, launcher, arguments_mark)


def emulator_command(profile: TargetProfile) -> tuple[str, ...]:
    """Return the command line that starts programs of the profile on this machine.

    Raises:
        UsageError: the profile has no emulator, or its emulator cannot run its code.
        EmulatorError: the emulator, or a file it needs, is not installed.
    """
    unknown = [word for word in profile.halide_target.split("-") if word.startswith(_NOT_EMULATED)]
    if unknown:
        raise UsageError(
            f"QEMU cannot run code of profile {profile.name}: it does not support {unknown[0]}.",
            next_step="Leave out --device, or choose a device that does.",
        )
    emulator = profile.emulator
    if emulator is None:
        raise UsageError(
            f"Profile {profile.name} has no emulator, so the device qemu cannot run its code.",
            next_step="Leave out --device, or add an [emulator] table to a profile of your own.",
        )
    install = f"On Debian: apt-get install {' '.join(emulator.debian_packages)}"
    command = shutil.which(emulator.command) or shutil.which(emulator.command + "-static")
    if command is None:
        raise EmulatorError(f"The emulator {emulator.command} is not installed.", next_step=install)
    if emulator.system_root is None:
        return (command, *emulator.arguments)
    if not Path(emulator.system_root).is_dir():
        raise EmulatorError(
            f"{emulator.command} needs the system root {emulator.system_root}, which is not installed.",
            next_step=install,
        )
    return (command, "-L", emulator.system_root, *emulator.arguments)


def _open_simulator(profile: TargetProfile, sdk: HexagonSdk | None) -> HexagonSimulator:
    if not profile.is_hexagon:
        raise UsageError(
            f"{HEXAGON_SIMULATOR} runs code for Hexagon, and profile {profile.name} is for {profile.halide_target}.",
            next_step="Leave out --device, or choose a Hexagon --target.",
        )
    if sdk is None:
        raise UsageError(
            f"{HEXAGON_SIMULATOR} is part of Qualcomm's Hexagon SDK, which is not configured.",
            next_step=f"Set {HEXAGON_SDK_VARIABLE} to its folder, or use --device qemu.",
        )
    return open_hexagon_simulator(sdk, profile.halide_target)


def _check_runs_here(profile: TargetProfile, host: HostMachine) -> None:
    architecture = "-".join(profile.halide_target.split("-")[:2])
    here = _HALIDE_ARCHITECTURES.get(host.architecture, host.architecture)
    if architecture != here:
        raise DeviceError(
            f"This machine is {here} and cannot run {architecture} code of profile {profile.name}.",
            next_step="Use --device qemu if the profile has an emulator, or another --target.",
        )
    missing = lacking_features(profile.halide_target, host)
    if missing:
        raise DeviceError(
            f"This machine's processor lacks {', '.join(missing)}, which profile {profile.name} uses.",
            next_step="Use --target host, which uses what this machine has.",
        )
