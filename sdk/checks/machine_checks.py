"""What this machine can build and emulate: one check after the other, each with what mends it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.health.probe import DeviceProbe
from sdk.settings import Settings
from targets.errors import SdkError, ToolchainError
from targets.halide_install import find_halide_install
from targets.hexagon.sdk import HEXAGON_SDK_VARIABLE, HexagonSdk, dsp_version_of, find_hexagon_sdk
from targets.profile.profile import EmulatorChoice, ProfileListing, TargetProfile
from targets.toolchain.c_toolchain import ANDROID_KIND, describe_toolchains, open_toolchain

OLDEST_PYTHON = (3, 11)
SMALLEST_FREE_DISK_BYTES = 2 * 1024**3
SMALLEST_FREE_MEMORY_BYTES = 2 * 1024**3
_CPP_COMPILERS = ("g++", "c++", "clang++")
_GIB = 1024**3


@dataclass(frozen=True)
class MachineCheck:
    """One thing that the SDK needs.

    Attributes:
        name: what was looked at.
        passed: whether it is there.
        found: what was found, or what is wrong.
        fix: what to do about it; empty where it passed.
        needed: False where missing it is no fault of this machine (it lacks another machine's vector unit).
    """

    name: str
    passed: bool
    found: str
    fix: str = ""
    needed: bool = True


def check_machine(settings: Settings, listings: Sequence[ProfileListing], *, must_run_here: bool) -> list[MachineCheck]:
    """Look at everything that the given profiles need; takes under a second, changes nothing.

    Args:
        settings: the folders, and PATH.
        listings: the profiles to look at.
        must_run_here: a profile measured on this machine must find its vector features here.
    """
    checks = [_python(), *_halide(listings), _cpp_compiler(settings), _zig(settings), _tensorflow()]
    checks += _assembler(settings, listings)
    simulator = _hexagon_simulator(settings)
    for listing in listings:
        checks.append(_profile(settings, listing, must_run_here, simulator))
        if listing.profile is not None and listing.profile.toolchain.kind == ANDROID_KIND:
            checks.append(_android_toolchain(settings, listing.profile))
    hexagon = [listing.profile for listing in listings if listing.profile is not None and listing.profile.is_hexagon]
    if settings.hexagon_sdk_root is not None or hexagon:
        checks += _hexagon_sdk(settings, hexagon, must_run_here)
    return [*checks, _inventory(settings), _disk(settings.cache_folder), _memory()]


def _python() -> MachineCheck:
    version = ".".join(str(part) for part in sys.version_info[:3])
    oldest = ".".join(str(part) for part in OLDEST_PYTHON)
    passed = sys.version_info[:2] >= OLDEST_PYTHON
    return MachineCheck("Python", passed, version, "" if passed else f"Install Python {oldest} or newer.")


def _halide(listings: Sequence[ProfileListing]) -> Iterator[MachineCheck]:
    try:
        install = find_halide_install()
    except ToolchainError as error:
        yield MachineCheck("Halide", False, error.message, error.next_step)
        return
    yield MachineCheck("Halide", True, install.version)
    used = {listing.profile.autoscheduler.name for listing in listings if listing.profile is not None}
    for name in sorted(used):
        try:
            yield MachineCheck(f"autoscheduler {name}", True, install.plugin_path(name).name)
        except ToolchainError as error:
            yield MachineCheck(f"autoscheduler {name}", False, error.message, error.next_step)


def _cpp_compiler(settings: Settings) -> MachineCheck:
    for name in _CPP_COMPILERS:
        if path := _which(settings, name):
            return MachineCheck("C++ compiler", True, path)
    return MachineCheck(
        "C++ compiler",
        False,
        "none of " + ", ".join(_CPP_COMPILERS) + " on PATH",
        "On Debian: apt-get install g++",
    )


def _zig(settings: Settings) -> MachineCheck:
    from targets.toolchain.zig import ZigToolchain

    try:
        toolchain = ZigToolchain("x86_64-linux-gnu", settings.cache_folder / "zig")
        return MachineCheck("C toolchain (zig)", True, toolchain.version())
    except ToolchainError as error:
        return MachineCheck("C toolchain (zig)", False, error.message, error.next_step)


def _android_toolchain(settings: Settings, profile: TargetProfile) -> MachineCheck:
    """Say whether bionic or static musl is linked; a variable that names no NDK is a fault, none is not."""
    name = f"C toolchain ({profile.name})"
    try:
        return MachineCheck(name, True, describe_toolchains(profile, settings.cache_folder, settings.ndk_root))
    except ToolchainError as error:
        return MachineCheck(name, False, error.message, error.next_step)


def _hexagon_sdk(settings: Settings, profiles: Sequence[TargetProfile], must_run_here: bool) -> Iterator[MachineCheck]:
    """Say what of Qualcomm's SDK there is; none is no fault, a variable that names none is."""
    from targets.hexagon.toolchain import compiler_words

    name, root = "Hexagon SDK", settings.hexagon_sdk_root
    if root is None:
        yield MachineCheck(name, True, f"none ({HEXAGON_SDK_VARIABLE} names none): kernels run under QEMU")
        return
    try:
        found = find_hexagon_sdk(root)
        words = compiler_words(found.compiler)
    except ToolchainError as error:
        yield MachineCheck(name, False, error.message, error.next_step)
        return
    yield MachineCheck(name, True, f"{found.describe()} ({words})")
    for profile in profiles:
        toolchain = open_toolchain(profile, settings.cache_folder, None, found)
        try:
            yield MachineCheck(f"C toolchain ({profile.name})", True, toolchain.describe())
        except ToolchainError as error:
            yield MachineCheck(f"C toolchain ({profile.name})", False, error.message, error.next_step, must_run_here)
    for profile in profiles:
        yield _device_runner(profile, found, settings)
    for part in found.missing():
        yield MachineCheck(name, False, f"it has no {part}", "Install it with the SDK's package manager.", needed=False)
    unknown = "`sdk doctor --device NAME` asks a phone whether FastRPC reaches its DSP, and whether that is signed"
    yield MachineCheck("Hexagon devices", True, unknown)


def _device_runner(profile: TargetProfile, sdk: HexagonSdk, settings: Settings) -> MachineCheck:
    """Say whether the SDK has what phones' DSPs run programs with; the simulator needs none of it."""
    from sdk.select.device_choice import device_profile
    from targets.hexagon.runners import open_hexagon_device_runner

    name = f"phones' DSPs ({profile.name})"
    dsp_profile = device_profile(profile)
    try:
        runner = open_hexagon_device_runner(sdk, dsp_profile.halide_target)
        open_toolchain(dsp_profile, settings.cache_folder, None, sdk).version()
    except ToolchainError as error:
        return MachineCheck(name, False, error.message, error.next_step, needed=False)
    return MachineCheck(name, True, f"run_main_on_hexagon and its skeleton for {runner.dsp_version}")


def _tensorflow() -> MachineCheck:
    # Found, not imported: the import takes seconds.
    try:
        if importlib.util.find_spec("tensorflow") is not None:
            return MachineCheck("TensorFlow", True, importlib.metadata.version("tensorflow"))
    except (importlib.metadata.PackageNotFoundError, ValueError):
        pass
    fix = "Install it with: pip install tensorflow"
    return MachineCheck("TensorFlow", False, "not installed in this Python", fix)


def _hexagon_simulator(settings: Settings) -> HexagonSdk | None:
    """The SDK that is named, where it has a simulator; what is wrong with it is told elsewhere."""
    if settings.hexagon_sdk_root is None:
        return None
    try:
        found = find_hexagon_sdk(settings.hexagon_sdk_root)
    except ToolchainError:
        return None
    return None if found.simulator is None else found


def _profile(
    settings: Settings, listing: ProfileListing, must_run_here: bool, hexagon_sdk: HexagonSdk | None
) -> MachineCheck:
    name = f"target {listing.name}"
    profile = listing.profile
    if profile is None:
        return MachineCheck(name, False, listing.error or "", "Mend the profile.")
    if profile.device_kind == "local":
        local = _local_target(name, profile, must_run_here)
        return _card(local, profile, settings, must_run_here) if local.passed else local
    assert profile.emulator is not None, "the loader lets no qemu profile pass without an emulator"
    emulator = _emulator(settings, name, profile.emulator)
    if hexagon_sdk is None or not profile.is_hexagon:
        return emulator
    if dsp_version_of(profile.halide_target) not in hexagon_sdk.dsp_versions:
        return emulator
    other = "" if emulator.passed else f"; --device qemu is not possible: {emulator.found}"
    return MachineCheck(name, True, f"{hexagon_sdk.simulator}{other}")


def _local_target(name: str, profile: TargetProfile, must_run_here: bool) -> MachineCheck:
    """Say whether this machine has every feature that the profile compiles for."""
    from targets.profile.halide_target import parse_halide_target
    from targets.profile.host_probe import host_halide_target, lacking_features, probe_host

    try:
        host = parse_halide_target(host_halide_target())
        missing = lacking_features(profile.halide_target, probe_host())
    except SdkError as error:
        return MachineCheck(name, False, error.message, error.next_step)
    wanted = parse_halide_target(profile.halide_target)
    other = "Measure it on a machine that has them; building for it works here."
    if (wanted.architecture, wanted.bits) != (host.architecture, host.bits):
        found = f"this machine is {host.architecture}-{host.bits}"
        return MachineCheck(name, False, found, other, must_run_here)
    if missing:
        found = f"this machine has no {', '.join(missing)}"
        return MachineCheck(name, False, found, other, must_run_here)
    return MachineCheck(name, True, "runs on this machine")


def _card(local: MachineCheck, profile: TargetProfile, settings: Settings, must_run_here: bool) -> MachineCheck:
    """For a profile with a card: whether one is in this machine, too."""
    if profile.machine.gpu is None:
        return local
    from sdk.checks.card_checks import find_local_card

    found = find_local_card(profile, settings)
    return MachineCheck(local.name, found.there, found.text, found.fix, must_run_here)


def _assembler(settings: Settings, listings: Sequence[ProfileListing]) -> Iterator[MachineCheck]:
    if any(listing.profile is not None and listing.profile.machine.gpu is not None for listing in listings):
        from sdk.checks.card_checks import find_assembler

        found = find_assembler(settings)
        yield MachineCheck("ptxas", found.there, found.text, found.fix, needed=False)


def _emulator(settings: Settings, name: str, emulator: EmulatorChoice) -> MachineCheck:
    missing = []
    command = _which(settings, emulator.command)
    if command is None:
        missing.append(f"the emulator {emulator.command} is not installed")
    if emulator.system_root is not None and not Path(emulator.system_root).is_dir():
        missing.append(f"the system root {emulator.system_root} is missing")
    if missing:
        packages = " ".join(emulator.debian_packages)
        fix = f"On Debian: apt-get install {packages}" if packages else "Install them, or name others in the profile."
        return MachineCheck(name, False, " and ".join(missing), fix)
    root = f" with {emulator.system_root}" if emulator.system_root else ""
    return MachineCheck(name, True, f"{command}{root}")


def _inventory(settings: Settings) -> MachineCheck:
    from sdk.inventory.lookup import open_inventory

    try:
        inventory = open_inventory(None, settings)
    except SdkError as error:
        return MachineCheck("inventory", False, error.message, error.next_step or "Correct the file.")
    count = len(inventory.devices)
    if count == 0:
        return MachineCheck("inventory", True, "no devices beside this machine and its emulators")
    return MachineCheck("inventory", True, f"{count} device{'s' * (count > 1)} in {inventory.file}")


def _disk(cache_folder: Path) -> MachineCheck:
    existing = cache_folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        fix = "Set SDK_CACHE_DIR to a folder that can be written."
        return MachineCheck("cache folder", False, f"{existing} is no folder that can be written", fix)
    free_bytes = shutil.disk_usage(existing).free
    passed = free_bytes >= SMALLEST_FREE_DISK_BYTES
    fix = "" if passed else "Free some, or set SDK_CACHE_DIR to a folder on another disk."
    return MachineCheck("cache folder", passed, f"{free_bytes / _GIB:.1f} GiB free for {cache_folder}", fix)


def _memory() -> MachineCheck:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        text = ""
    available = re.search(r"^MemAvailable:\s*([0-9]+) kB", text, re.MULTILINE)
    if available is None:
        return MachineCheck("memory", True, "the kernel does not say how much is free")
    free_bytes = int(available[1]) * 1024
    passed = free_bytes >= SMALLEST_FREE_MEMORY_BYTES
    wanted = f"Searching and training want {SMALLEST_FREE_MEMORY_BYTES // _GIB} GiB: end other programs."
    fix = "" if passed else wanted
    return MachineCheck("memory", passed, f"{free_bytes / _GIB:.1f} GiB free", fix)


def _which(settings: Settings, command: str) -> str | None:
    return shutil.which(command, path=settings.environment.get("PATH", os.defpath))


def check_dsp(name: str, probe: Callable[[], DeviceProbe]) -> Iterator[MachineCheck]:
    """Ask a device; what is missing of its DSP is no fault, since its processor is tuned without it.

    Args:
        name: the device's, as the user calls it.
        probe: asks it; raises SdkError.
    """
    try:
        found = probe()
    except SdkError as error:
        yield MachineCheck(f"device {name}", False, error.message, error.next_step)
        return
    yield _fastrpc(name, found)
    yield _signature(name, found)


def _fastrpc(name: str, found: DeviceProbe) -> MachineCheck:
    title = f"FastRPC ({name})"
    usable = [node.path for node in found.fastrpc if node.usable]
    if usable:
        return MachineCheck(title, True, f"{', '.join(usable)} may be opened")
    if not found.fastrpc:
        fix = "Use a phone with a Hexagon DSP, and a kernel with its driver."
        return MachineCheck(title, False, "there is no device file of it: no DSP, or none for programs", fix, False)
    closed = ", ".join(node.path for node in found.fastrpc)
    fix = "Run adb as root on a development device, or use a phone that lets its shell use the DSP."
    return MachineCheck(title, False, f"{closed} may not be opened by the user that programs run as", fix, False)


def _signature(name: str, found: DeviceProbe) -> MachineCheck:
    title = f"DSP signature ({name})"
    if found.dsp_signature_folder:
        return MachineCheck(title, True, f"there is one in {found.dsp_signature_folder}")
    fix = "Sign the device with the Hexagon SDK's signer.py, or use an unsigned process domain where the DSP has one."
    return MachineCheck(title, False, "none: its DSP refuses programs of yours in a signed process domain", fix, False)
