"""What a probe says about a device: its profile, its machine parameters, and facts for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from halide_autotune.devices.health.probe import DeviceProbe
from halide_autotune.devices.inventory.inventory import DeviceMachine, Fact, InventoryDevice
from halide_autotune.targets.errors import DeviceError, UsageError
from halide_autotune.targets.values.texts import printable

# Cores within this share of the fastest count as fast; the little cores of a phone are at a half or below.
_FAST_SHARE = 0.75
_PROFILES = {"x86_64": "x86-64", "aarch64": "arm64"}
_ANDROID_PROFILES = {"aarch64": "arm64-android"}
# By the output of `uname -m`: the first two words of the Halide targets whose code runs there.
_RUNS = {
    "x86_64": ("x86-64", "x86-32"),
    "i686": ("x86-32",),
    "aarch64": ("arm-64", "arm-32"),
    "armv8l": ("arm-32",),
    "armv7l": ("arm-32",),
    "riscv64": ("riscv-64",),
}
_ALL_RUN = frozenset(target for targets in _RUNS.values() for target in targets)
_LONGEST_FACT_CHARACTERS = 200


def guess_profile(probe: DeviceProbe) -> str:
    """Return the built-in profile for the device's processor and system.

    Raises:
        DeviceError: there is none.
    """
    found = (_ANDROID_PROFILES if probe.android else _PROFILES).get(probe.machine)
    if found is None:
        system = "Android" if probe.android else "Linux"
        raise DeviceError(
            f"No target profile is known for {probe.machine[:40]} under {system}.",
            next_step="Name one with --target; `sdk targets` lists them.",
        )
    return found


def check_profile(name: str, halide_target: str, probe: DeviceProbe) -> None:
    """Check that code for a profile's Halide target can run on the device's processor, if both are known.

    Raises:
        UsageError: it cannot.
    """
    runs = _RUNS.get(probe.machine)
    made_for = "-".join(halide_target.split("-")[:2])
    if runs is not None and made_for in _ALL_RUN and made_for not in runs:
        raise UsageError(
            f"Code for profile {name} ({made_for}) does not run on the device, which is {probe.machine}.",
            next_step="Choose another --target (`sdk targets` lists them), or leave it out.",
        )


def fast_cores(probe: DeviceProbe) -> tuple[int, ...]:
    """Return the fast cores of a machine that also has slow ones; empty if all are alike or nothing is known."""
    for speeds in ([core.capacity for core in probe.cores], [core.max_hz for core in probe.cores]):
        known = [speed for speed in speeds if speed]
        if not known or len(known) < len(speeds):
            continue
        fast = [core.core for core, speed in zip(probe.cores, known, strict=True) if speed >= _FAST_SHARE * max(known)]
        if len(fast) < len(known):
            return tuple(fast)
    return ()


def machine_of(probe: DeviceProbe, cores: Sequence[int]) -> DeviceMachine:
    """Return the machine parameters for searches.

    Args:
        cores: the cores that kernels will run on; empty for all.
    """
    used = set(cores) or {core.core for core in probe.cores}
    chosen = fast_cores(probe) or used
    near = next((core for core in sorted(used) if core in chosen), min(used, default=0))
    sizes: dict[int, int] = {}
    for cache in probe.caches:
        if cache.type != "Instruction" and cache.size_bytes and (not cache.shared_cores or near in cache.shared_cores):
            sizes[cache.level] = max(cache.size_bytes, sizes.get(cache.level, 0))
    return DeviceMachine(
        parallelism=len(used) or None,
        l1_data_cache_bytes=sizes.get(1),
        l2_cache_bytes=sizes.get(2),
        last_level_cache_bytes=sizes[max(sizes)] if sizes and max(sizes) > 1 else None,
    )


def facts_of(probe: DeviceProbe, at: str) -> tuple[tuple[str, Fact], ...]:
    """Return facts for people; what the device does not tell is left out.

    Args:
        at: when it was probed.
    """
    frequencies = [int(core.max_hz) for core in probe.cores if core.max_hz]
    facts: list[tuple[str, Fact | None]] = [
        ("cpu", probe.cpu_model),
        ("architecture", probe.machine),
        ("cores", len(probe.cores)),
        ("fast_cores", fast_cores(probe)),
        ("lowest_max_hz", min(frequencies, default=None)),
        ("highest_max_hz", max(frequencies, default=None)),
        ("governors", _different(core.governor for core in probe.cores)),
        ("memory_bytes", None if probe.memory_bytes is None else int(probe.memory_bytes)),
        ("os", probe.os),
        ("kernel", probe.kernel),
        ("temperature_zones", _different(zone.type for zone in probe.temperature_zones)),
        ("emulated", probe.emulated or None),
        ("fastrpc", tuple(node.path for node in probe.dsp.nodes if node.usable)),
        ("dsp_signature_folder", probe.dsp.signature_folder),
        ("at", at),
    ]
    return tuple((key, _short(fact)) for key, fact in facts if fact not in (None, "", (), 0))


def check_cores(device: InventoryDevice, probe: DeviceProbe) -> None:
    """Check that the device has the cores that kernels are to run on.

    Raises:
        UsageError: it lacks one.
    """
    there = {core.core for core in probe.cores}
    missing = [core for core in device.place.cores if core not in there]
    if there and missing:
        raise UsageError(
            f"Device '{device.name}' has no core {missing[0]}; it has {cores_text(sorted(there))}.",
            next_step="Correct `cores`.",
        )


def cores_text(cores: Sequence[int]) -> str:
    """Return ascending cores as a list such as '0-3,6'."""
    ranges: list[list[int]] = []
    for core in cores:
        if ranges and ranges[-1][1] == core - 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _different(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_line(value) for value in values if value))


def _short(fact: Fact | None) -> Fact:
    return _line(fact) if isinstance(fact, str) else fact or ""


def _line(text: str) -> str:
    """Return a text from the device that is safe in a file and on a terminal."""
    return printable(text)[:_LONGEST_FACT_CHARACTERS]
