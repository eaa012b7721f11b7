"""Probe this machine: cores, caches, memory and vector features, from /proc and /sys in a millisecond.

A value that the kernel or a container hides is None or empty, never guessed. CPU affinity and the CPU and memory limits
of control groups (version 1 and 2) are respected.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError

# Long enough for a busy machine; it ends a hang.
_HOST_TARGET_TIME_LIMIT_S = 120
_SIZE = re.compile(r"([0-9]+)([KMG]?)")
_SIZE_UNITS_BYTES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}

# A Halide feature, and the kernel's flags that it needs by Halide's calculate_host_target().
_AVX512 = frozenset(["avx512f", "avx512cd"])
_SKYLAKE = _AVX512 | {"avx512vl", "avx512bw", "avx512dq"}
_CANNONLAKE = _SKYLAKE | {"avx512ifma"}
_ZEN4 = _CANNONLAKE | {"avx512_vnni", "avx512_bf16"}
_X86_FEATURES: tuple[tuple[str, frozenset[str]], ...] = (
    ("avx", frozenset(["avx"])),
    ("avx2", frozenset(["avx2"])),
    ("avx512", _AVX512),
    ("avx512_cannonlake", _CANNONLAKE),
    ("avx512_knl", _AVX512 | {"avx512pf", "avx512er"}),
    ("avx512_sapphirerapids", _ZEN4 | {"avx_vnni", "amx_int8"}),
    ("avx512_skylake", _SKYLAKE),
    ("avx512_zen4", _ZEN4),
    ("avxvnni", frozenset(["avx_vnni"])),
    ("f16c", frozenset(["f16c"])),
    ("fma", frozenset(["fma"])),
    ("fma4", frozenset(["fma4"])),
    ("sse41", frozenset(["sse4_1"])),
)
_ARM_FEATURES: tuple[tuple[str, frozenset[str]], ...] = (
    ("arm_dot_prod", frozenset(["asimddp"])),
    ("arm_fp16", frozenset(["fphp", "asimdhp"])),
    ("sve", frozenset(["sve"])),
    ("sve2", frozenset(["sve2"])),
)
# The prefixes of the features that Halide detects in its host's processor; not armv81a and so on.
_LOOKED_FOR = ("avx", "sse", "fma", "f16c", "x86apx", "sve", "arm_")


@dataclass(frozen=True)
class HostMachine:
    """This machine, as far as a program that starts now may use it.

    Attributes:
        cpu_model: the processor's name; empty if unknown.
        architecture: the kernel's name for it (`x86_64`, `aarch64`).
        logical_cores: cores that this process may use: its CPU affinity, limited by the control group's quota.
        l1_data_cache_bytes, l2_cache_bytes, last_level_cache_bytes: of the first usable CPU; None if unknown.
        memory_bytes: memory, limited by the control group; None if unknown.
        features: the vector features that the kernel's flags show, in Halide's names, sorted. Compile for those of
            `host_halide_target`, which Halide detects itself.
    """

    cpu_model: str
    architecture: str
    logical_cores: int
    l1_data_cache_bytes: int | None
    l2_cache_bytes: int | None
    last_level_cache_bytes: int | None
    memory_bytes: int | None
    features: tuple[str, ...]


def probe_host(root: Path = Path("/"), usable_cpus: frozenset[int] | None = None) -> HostMachine:
    """Describe this machine from the kernel's files; takes milliseconds and never fails.

    Args:
        root: the folder of `proc` and `sys`.
        usable_cpus: the numbers of the usable CPUs; None asks the kernel for those of this process.
    """
    cpus = sorted(usable_cpus if usable_cpus is not None else os.sched_getaffinity(0)) or [0]
    quota = _cpu_quota(root)
    logical_cores = len(cpus) if quota is None else max(1, min(len(cpus), int(quota)))
    caches = _cache_sizes_bytes(root, cpus[0])
    model, flags = _cpu_info(root)
    return HostMachine(
        cpu_model=model,
        architecture=os.uname().machine,
        logical_cores=logical_cores,
        l1_data_cache_bytes=caches.get(1),
        l2_cache_bytes=caches.get(2),
        last_level_cache_bytes=caches[max(caches)] if caches and max(caches) > 1 else None,
        memory_bytes=_memory_bytes(root),
        features=tuple(name for name, needed in _X86_FEATURES + _ARM_FEATURES if needed <= flags),
    )


def usable_memory_bytes(root: Path = Path("/")) -> int:
    """Return the memory that this process may use: this machine's, limited by the control group.

    Args:
        root: the folder of `proc` and `sys`.
    """
    return _memory_bytes(root) or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def host_halide_target() -> str:
    """Return Halide's target string of this machine, from the tool in Halide's wheel (some 10 ms).

    Raises:
        ToolchainError: Halide is not installed, or its tool fails.
    """
    from halide_autotune.targets.halide_install import find_halide_install

    tool = find_halide_install().bin_dir / "get_host_target"
    try:
        done = subprocess.run(
            [str(tool)], capture_output=True, text=True, timeout=_HOST_TARGET_TIME_LIMIT_S, check=True, env={}
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        raise ToolchainError(
            f"Halide's tool {tool} cannot detect this machine's target ({error}).",
            next_step="Reinstall Halide: pip install --force-reinstall halide",
        ) from error
    return done.stdout.strip()


def lacking_features(halide_target: str, host: HostMachine) -> tuple[str, ...]:
    """Return the features of a Halide target whose instructions this machine lacks, sorted.

    Features that the kernel's flags do not show are left to Halide, which detects some by the processor's model.

    Raises:
        ToolchainError: Halide is not installed, or its tool fails.
    """
    lacking = {word for word in halide_target.split("-") if word.startswith(_LOOKED_FOR)} - set(host.features)
    if lacking:
        lacking -= set(host_halide_target().split("-"))
    return tuple(sorted(lacking))


def _cache_sizes_bytes(root: Path, cpu: int) -> dict[int, int]:
    """Return the size of the data or unified cache at each level of one CPU."""
    sizes: dict[int, int] = {}
    for index in range(8):
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
        level = _read(folder / "level").strip()
        if not level:
            break
        size = _SIZE.fullmatch(_read(folder / "size").strip())
        if size and level.isdecimal() and _read(folder / "type").strip() in ("Data", "Unified"):
            sizes[int(level)] = int(size[1]) * _SIZE_UNITS_BYTES[size[2]]
    return {level: size_bytes for level, size_bytes in sizes.items() if size_bytes > 0}


def _cpu_info(root: Path) -> tuple[str, frozenset[str]]:
    """Return the processor's name and the kernel's flags for its first core."""
    values: dict[str, str] = {}
    for line in _read(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        values.setdefault(key.strip(), value.strip())
    # On ARM cpuinfo has no model; boards have it in the device tree.
    model = values.get("model name") or _read(root / "proc/device-tree/model").strip("\0\n ")
    return model, frozenset((values.get("flags") or values.get("Features") or "").split())


def _memory_bytes(root: Path) -> int | None:
    total = re.search(r"^MemTotal:\s*([0-9]+) kB", _read(root / "proc/meminfo"), re.MULTILINE)
    limits_bytes = [int(total[1]) * 1024] if total else []
    for folder in _control_groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(folder / name).strip()
            if text.isdecimal():
                limits_bytes.append(int(text))
    return min(limits_bytes) if total else None


def _cpu_quota(root: Path) -> float | None:
    """Return how many cores' time the control groups allow; None if there is no limit."""
    quotas: list[float] = []
    for folder in _control_groups(root, "cpu"):
        quota, _, period = _read(folder / "cpu.max").strip().partition(" ")
        if not quota:
            quota = _read(folder / "cpu.cfs_quota_us").strip()
            period = _read(folder / "cpu.cfs_period_us").strip()
        if quota.isdecimal() and period.isdecimal() and int(period) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas) if quotas else None


def _control_groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control groups for one controller, each with all its parents.

    In a container the path named in /proc may not exist; then the top folder of its mount has the limit.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        mounts = [root / "sys/fs/cgroup" / c for c in (controller, controllers)] if controllers else []
        mounts = mounts or [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for mount in dict.fromkeys(mounts):
            for depth in range(len(parts) + 1):
                yield mount.joinpath(*parts[:depth])


def _read(path: Path) -> str:
    """Return a file's text; empty if it is missing or unreadable."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
