"""Checks of what this machine can build and emulate, each with its fix."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from halide_autotune.devices.health.probe import DeviceProbe
from halide_autotune.sdk.checks.card_checks import check_assembler, check_local_card
from halide_autotune.sdk.checks.check import Check, try_check
from halide_autotune.sdk.display.quantities import count_text
from halide_autotune.sdk.inventory.lookup import open_inventory
from halide_autotune.sdk.project.history import open_history
from halide_autotune.sdk.select.device_choice import device_profile
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.simulated_clock_plugin import check_emulator
from halide_autotune.targets.errors import EmulatorError, SdkError, ToolchainError
from halide_autotune.targets.halide_install import HalideInstall, find_halide_install
from halide_autotune.targets.hexagon.runners import open_hexagon_device_runner
from halide_autotune.targets.hexagon.sdk import HEXAGON_SDK_VARIABLE, HexagonSdk, dsp_version_of, find_hexagon_sdk
from halide_autotune.targets.hexagon.toolchain import compiler_words
from halide_autotune.targets.profile.halide_target import parse_halide_target
from halide_autotune.targets.profile.host_probe import host_halide_target, lacking_features, probe_host
from halide_autotune.targets.profile.profile import EmulatorChoice, ProfileListing, TargetProfile
from halide_autotune.targets.toolchain.c_toolchain import ZIG_KIND, describe_toolchains, open_toolchain
from halide_autotune.targets.toolchain.host_cpp_compiler import CPP_COMPILERS
from halide_autotune.targets.toolchain.zig import ZigToolchain

SMALLEST_FREE_DISK_BYTES = 2 * 1024**3
SMALLEST_FREE_MEMORY_BYTES = 2 * 1024**3
_GIB = 1024**3


def check_machine(settings: Settings, listings: Sequence[ProfileListing], *, must_run_here: bool) -> list[Check]:
    """Check everything that the given profiles need; takes under a second, changes nothing.

    Args:
        settings: the folders, and PATH.
        listings: the profiles to check.
        must_run_here: a profile measured on this machine must find its vector features here.
    """
    profiles = [listing.profile for listing in listings if listing.profile is not None]
    python = Check("Python", True, platform.python_version())
    checks = [python, *_halide(profiles), _cpp_compiler(settings), _zig(settings), _tensorflow()]
    if any(profile.machine.gpu is not None for profile in profiles):
        checks.append(check_assembler(settings))
    try:
        sdk = None if settings.hexagon_sdk_root is None else find_hexagon_sdk(settings.hexagon_sdk_root)
    except ToolchainError:
        sdk = None  # another check says what is wrong with it
    checks += _simulated_clocks(settings, profiles)
    for listing in listings:
        checks.append(_profile(settings, listing, must_run_here, sdk))
        if listing.profile is not None and listing.profile.toolchain.kind != ZIG_KIND:
            # A package's; or bionic or static musl, and it is a fault if a variable names a folder that is no NDK.
            describe = partial(describe_toolchains, listing.profile, settings.cache_folder, settings.ndk_root)
            checks.append(try_check(f"C toolchain ({listing.profile.name})", describe))
    hexagon = [profile for profile in profiles if profile.is_hexagon]
    if settings.hexagon_sdk_root is not None or hexagon:
        checks += _hexagon_sdk(settings, hexagon, must_run_here)
    known = try_check("history", partial(_history, settings))
    return [*checks, _inventory(settings), known, _disk(settings.cache_folder), _memory()]


def _halide(profiles: Sequence[TargetProfile]) -> Iterator[Check]:
    try:
        install = find_halide_install()
    except ToolchainError as error:
        yield Check("Halide", False, error.message, error.next_step)
        return
    yield Check("Halide", True, install.version)
    for name in sorted({profile.autoscheduler.name for profile in profiles}):
        yield try_check(f"autoscheduler {name}", partial(_plugin_name, install, name))


def _plugin_name(install: HalideInstall, autoscheduler: str) -> str:
    return install.plugin_path(autoscheduler).name


def _cpp_compiler(settings: Settings) -> Check:
    for name in CPP_COMPILERS:
        if path := _which(settings, name):
            return Check("C++ compiler", True, path)
    return Check(
        "C++ compiler",
        False,
        "none of " + ", ".join(CPP_COMPILERS) + " on PATH",
        "On Debian: apt-get install g++",
    )


def _zig(settings: Settings) -> Check:
    zig = ZigToolchain("x86_64-linux-gnu", settings.cache_folder / "zig")
    return try_check("C toolchain (zig)", zig.version)


def _hexagon_sdk(settings: Settings, profiles: Sequence[TargetProfile], must_run_here: bool) -> Iterator[Check]:
    """Check the parts of Qualcomm's SDK; it may be absent, but a variable must not name a folder that is none."""
    name, root = "Hexagon SDK", settings.hexagon_sdk_root
    if root is None:
        yield Check(name, True, f"none ({HEXAGON_SDK_VARIABLE} is not set): kernels run under QEMU")
        return
    try:
        found = find_hexagon_sdk(root)
        words = compiler_words(found.compiler)
    except ToolchainError as error:
        yield Check(name, False, error.message, error.next_step)
        return
    yield Check(name, True, f"{found.describe()} ({words})")
    for profile in profiles:
        toolchain = open_toolchain(profile, settings.cache_folder, None, found)
        yield try_check(f"C toolchain ({profile.name})", toolchain.describe, needed=must_run_here)
    for profile in profiles:
        yield _device_runner(profile, found, settings)
    for part in found.missing():
        yield Check(name, False, f"it has no {part}", "Install it with the SDK's package manager.", needed=False)
    how = "run `sdk doctor --device NAME` to check whether FastRPC reaches a phone's DSP, and whether that is signed"
    yield Check("Hexagon devices", True, how)


def _device_runner(profile: TargetProfile, sdk: HexagonSdk, settings: Settings) -> Check:
    """Check for the SDK's parts that run programs on phones' DSPs; the simulator needs none of them."""

    def describe() -> str:
        dsp_profile = device_profile(profile)
        runner = open_hexagon_device_runner(sdk, dsp_profile.halide_target)
        open_toolchain(dsp_profile, settings.cache_folder, None, sdk).version()
        return f"run_main_on_hexagon and its skeleton for {runner.dsp_version}"

    return try_check(f"phones' DSPs ({profile.name})", describe, needed=False)


def _tensorflow() -> Check:
    # Found, not imported: the import takes seconds.
    try:
        if importlib.util.find_spec("tensorflow") is not None:
            return Check("TensorFlow", True, importlib.metadata.version("tensorflow"))
    except (importlib.metadata.PackageNotFoundError, ValueError):
        pass
    fix = "Install it with: pip install tensorflow"
    return Check("TensorFlow", False, "not installed in this Python", fix)


def _profile(settings: Settings, listing: ProfileListing, must_run_here: bool, hexagon_sdk: HexagonSdk | None) -> Check:
    name = f"target {listing.name}"
    profile = listing.profile
    if profile is None:
        return Check(name, False, listing.error or "", "Correct the profile.")
    if profile.device_kind == "local":
        local = _local_target(name, profile, must_run_here)
        if not local.passed or profile.machine.gpu is None:
            return local
        return replace(check_local_card(profile, settings), name=name, needed=must_run_here)
    assert profile.emulator is not None, "the loader lets no qemu profile pass without an emulator"
    emulator = _emulator(settings, name, profile.emulator)
    if hexagon_sdk is None or hexagon_sdk.simulator is None or not profile.is_hexagon:
        return emulator
    if dsp_version_of(profile.halide_target) not in hexagon_sdk.dsp_versions:
        return emulator
    other = "" if emulator.passed else f"; --device qemu does not work: {emulator.found}"
    return Check(name, True, f"{hexagon_sdk.simulator}{other}")


def _local_target(name: str, profile: TargetProfile, must_run_here: bool) -> Check:
    """Check that this machine has every feature that the profile compiles for."""
    try:
        host = parse_halide_target(host_halide_target())
        missing = lacking_features(profile.halide_target, probe_host())
    except SdkError as error:
        return Check(name, False, error.message, error.next_step)
    wanted = parse_halide_target(profile.halide_target)
    found = ""
    if (wanted.architecture, wanted.bits) != (host.architecture, host.bits):
        found = f"this machine is {host.architecture}-{host.bits}"
    elif missing:
        found = f"this machine has no {', '.join(missing)}"
    if found:
        fix = "Measure it on a machine that has them; building for it works here."
        return Check(name, False, found, fix, must_run_here)
    return Check(name, True, "runs on this machine")


def _emulator(settings: Settings, name: str, emulator: EmulatorChoice) -> Check:
    missing = []
    command = _which(settings, emulator.command)
    if command is None:
        missing.append(f"the emulator {emulator.command} is not installed")
    if emulator.system_root is not None and not Path(emulator.system_root).is_dir():
        missing.append(f"the system root {emulator.system_root} is missing")
    if missing:
        packages = " ".join(emulator.debian_packages)
        fix = f"On Debian: apt-get install {packages}" if packages else "Install it, or name another in the profile."
        return Check(name, False, " and ".join(missing), fix)
    root = f" with {emulator.system_root}" if emulator.system_root else ""
    return Check(name, True, f"{command}{root}")


def _simulated_clocks(settings: Settings, profiles: Sequence[TargetProfile]) -> Iterator[Check]:
    """Check which of the emulators that are there give simulated times; a run without takes the emulator's own."""
    commands = sorted({profile.emulator.command for profile in profiles if profile.emulator is not None})
    fit, unfit = [], {}
    for path in filter(None, (_which(settings, command) for command in commands)):
        try:
            check_emulator(path, settings.environment)
            fit.append(path)
        except EmulatorError as error:
            unfit[path] = error
    if fit:
        yield Check("simulated clock", True, ", ".join(fit))
    if unfit:
        first, *others = unfit
        found = unfit[first].message + (f" {', '.join(others)}: no simulated clock either." if others else "")
        yield Check("simulated clock", False, found, unfit[first].next_step, needed=False)


def _inventory(settings: Settings) -> Check:
    try:
        inventory = open_inventory(None, settings)
    except SdkError as error:
        return Check("inventory", False, error.message, error.next_step or "Correct the file.")
    count = len(inventory.devices)
    if count == 0:
        return Check("inventory", True, "no devices other than this machine and its emulators")
    return Check("inventory", True, f"{count_text(count, 'device')} in {inventory.file}")


def _history(settings: Settings) -> str:
    places = open_history(settings).summary()
    count, pipelines = sum(place.schedules for place in places), len({place.pipeline for place in places})
    return f"{count_text(count, 'schedule')} of {count_text(pipelines, 'generator')}" if places else "nothing yet"


def _disk(cache_folder: Path) -> Check:
    existing = cache_folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    usage = shutil.disk_usage(existing)
    # /proc and its like have no place for anything.
    if not (existing.is_dir() and os.access(existing, os.W_OK) and usage.total):
        return Check("cache folder", False, f"{existing} is not a writable folder", "Set SDK_CACHE_DIR to another.")
    free_bytes = usage.free
    passed = free_bytes >= SMALLEST_FREE_DISK_BYTES
    fix = "" if passed else "Free some space, or set SDK_CACHE_DIR to a folder on another disk."
    return Check("cache folder", passed, f"{free_bytes / _GIB:.1f} GiB free for {cache_folder}", fix)


def _memory() -> Check:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        text = ""
    available = re.search(r"^MemAvailable:\s*([0-9]+) kB", text, re.MULTILINE)
    if available is None:
        return Check("memory", True, "the kernel does not say how much is free")
    free_bytes = int(available[1]) * 1024
    passed = free_bytes >= SMALLEST_FREE_MEMORY_BYTES
    fix = f"Stop other programs: searching and training need {SMALLEST_FREE_MEMORY_BYTES // _GIB} GiB."
    return Check("memory", passed, f"{free_bytes / _GIB:.1f} GiB free", "" if passed else fix)


def _which(settings: Settings, command: str) -> str | None:
    return shutil.which(command, path=settings.environment.get("PATH", os.defpath))


def check_dsp(name: str, probe: Callable[[], DeviceProbe]) -> Iterator[Check]:
    """Check a device's DSP; a failure is no fault, because its processor can be tuned without it.

    Args:
        name: the device's name in the inventory.
        probe: asks the device; raises SdkError.
    """
    try:
        found = probe()
    except SdkError as error:
        yield Check(f"device {name}", False, error.message, error.next_step)
        return
    yield _fastrpc(name, found)
    yield _signature(name, found)


def _fastrpc(name: str, found: DeviceProbe) -> Check:
    title = f"FastRPC ({name})"
    usable = [node.path for node in found.dsp.nodes if node.usable]
    if usable:
        return Check(title, True, f"{', '.join(usable)} can be opened")
    if not found.dsp.nodes:
        fix = "Use a phone with a Hexagon DSP and a kernel with its driver."
        return Check(title, False, "there is no device file: no DSP, or none that programs may use", fix, False)
    closed = ", ".join(node.path for node in found.dsp.nodes)
    fix = "Run adb as root on a development device, or use a phone whose shell may use the DSP."
    return Check(title, False, f"the user that runs programs may not open {closed}", fix, False)


def _signature(name: str, found: DeviceProbe) -> Check:
    title = f"DSP signature ({name})"
    if found.dsp.signature_folder:
        return Check(title, True, f"found in {found.dsp.signature_folder}")
    fix = "Sign the device with the Hexagon SDK's signer.py, or use an unsigned process domain if the DSP has one."
    return Check(title, False, "none: the DSP refuses your programs in a signed process domain", fix, False)
