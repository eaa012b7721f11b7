"""What this machine is: cores, caches, memory and vector features, read from /proc and /sys in a millisecond.

Every value that a kernel or a container hides is left out (None, or an empty tuple), never guessed. CPU
affinity and the CPU and memory limits of control groups (version 1 and 2) are respected.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from targets.errors import ToolchainError

# It takes a moment: this ends one that hangs, and not one on a machine that does other work.
_HOST_TARGET_TIME_LIMIT_S = 120
_SIZE = re.compile(r"([0-9]+)([KMG]?)")
_SIZE_UNITS_BYTES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}

# Halide feature and the kernel's names for what it needs, by the rules of Halide's calculate_host_target().
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
# How Halide's names begin of the features that it looks for in its host's processor; it does not for armv81a and so on.
_LOOKED_FOR = ("avx", "sse", "fma", "f16c", "x86apx", "sve", "arm_")


@dataclass(frozen=True)
class HostMachine:
    """This machine, as a program started now may use it.

    Attributes:
        cpu_model: the processor's name; empty where the kernel does not say.
        architecture: the kernel's name for it (`x86_64`, `aarch64`).
        logical_cores: cores usable by this process: CPU affinity, cut by the control group's quota.
        physical_cores: distinct cores among those; never more than `logical_cores`.
        core_siblings: the CPU numbers usable, grouped by physical core, in ascending order.
        l1_data_cache_bytes, l2_cache_bytes, last_level_cache_bytes: of the first usable CPU; None if unknown.
        memory_bytes: memory, cut by the control group's limit; None where not known.
        features: Halide's names of the vector features, sorted, as far as the kernel's flags tell them.
            `host_halide_target` has Halide's own answer, which is the one to compile for.
    """

    cpu_model: str
    architecture: str
    logical_cores: int
    physical_cores: int
    core_siblings: tuple[tuple[int, ...], ...]
    l1_data_cache_bytes: int | None
    l2_cache_bytes: int | None
    last_level_cache_bytes: int | None
    memory_bytes: int | None
    features: tuple[str, ...]


def probe_host(root: Path = Path("/"), usable_cpus: frozenset[int] | None = None) -> HostMachine:
    """Describe this machine from the files of the kernel; takes milliseconds and never fails.

    Args:
        root: the folder that holds `proc` and `sys`.
        usable_cpus: CPU numbers to take as usable; those of this process where not given.
    """
    cpus = sorted(usable_cpus if usable_cpus is not None else os.sched_getaffinity(0)) or [0]
    siblings = _core_siblings(root, cpus)
    quota = _cpu_quota(root)
    logical_cores = len(cpus) if quota is None else max(1, min(len(cpus), int(quota)))
    caches = _cache_sizes_bytes(root, cpus[0])
    model, flags = _cpu_info(root)
    return HostMachine(
        cpu_model=model,
        architecture=os.uname().machine,
        logical_cores=logical_cores,
        physical_cores=min(len(siblings), logical_cores),
        core_siblings=siblings,
        l1_data_cache_bytes=caches.get(1),
        l2_cache_bytes=caches.get(2),
        last_level_cache_bytes=caches[max(caches)] if caches and max(caches) > 1 else None,
        memory_bytes=_memory_bytes(root),
        features=tuple(name for name, needed in _X86_FEATURES + _ARM_FEATURES if needed <= flags),
    )


def usable_memory_bytes(root: Path = Path("/")) -> int:
    """Return the memory that this process may use: this machine's, cut by the control group's limit.

    Args:
        root: the folder that holds `proc` and `sys`.
    """
    return _memory_bytes(root) or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def host_halide_target() -> str:
    """Return Halide's target string of this machine, by running the tool in Halide's wheel (some 10 ms).

    Raises:
        ToolchainError: Halide is not installed, or its tool fails.
    """
    from targets.halide_install import find_halide_install

    tool = find_halide_install().bin_dir / "get_host_target"
    try:
        done = subprocess.run(
            [str(tool)], capture_output=True, text=True, timeout=_HOST_TARGET_TIME_LIMIT_S, check=True, env={}
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        raise ToolchainError(
            f"Halide's tool {tool} does not tell this machine's target ({error}).",
            next_step="Install the halide package again.",
        ) from error
    return done.stdout.strip()


def lacking_features(halide_target: str, host: HostMachine) -> tuple[str, ...]:
    """Return the features of a Halide target that need instructions which this machine does not have, sorted.

    Halide is asked about those that the kernel's flags do not show: some it takes from the processor's model, and what
    it says of this machine is what profile host is compiled for.

    Raises:
        ToolchainError: Halide is not installed, or its tool fails.
    """
    lacking = {word for word in halide_target.split("-") if word.startswith(_LOOKED_FOR)} - set(host.features)
    if lacking:
        lacking -= set(host_halide_target().split("-"))
    return tuple(sorted(lacking))


def _core_siblings(root: Path, cpus: list[int]) -> tuple[tuple[int, ...], ...]:
    """Group the usable CPUs by physical core; a CPU whose topology is hidden is a core of its own."""
    grouped: dict[int, tuple[int, ...]] = {}
    for cpu in cpus:
        if cpu not in grouped:
            text = _read(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
            group = tuple(c for c in cpus if c == cpu or c in _cpu_list(text))
            grouped.update(dict.fromkeys(group, group))
    return tuple(sorted(set(grouped.values())))


def _cpu_list(text: str) -> frozenset[int]:
    """Read the kernel's list format, such as `0,4-6`."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


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
    # ARM kernels name no model in cpuinfo; boards do in the device tree.
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
    """Return how many cores' worth of time the control groups allow; None without a limit."""
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

    Inside a container the path named in /proc may not exist; its mount's top folder then holds the limit.
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
    """Return a file's text; empty where it is missing or may not be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
