"""This machine, and machines made of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from halide_autotune.targets.profile.halide_target import parse_halide_target
from halide_autotune.targets.profile.host_probe import (
    HostMachine,
    host_halide_target,
    lacking_features,
    probe_host,
    usable_memory_bytes,
)


def machine(root: Path, files: dict[str, str], cpus: frozenset[int]) -> HostMachine:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return probe_host(root, cpus)


def test_this_machine() -> None:
    host = probe_host()
    assert 1 <= host.logical_cores <= len(os.sched_getaffinity(0))
    assert host.architecture == os.uname().machine
    assert host.memory_bytes is None or host.memory_bytes > 2**28


def test_the_target_is_halides_own() -> None:
    import halide

    assert host_halide_target() == halide.get_host_target().to_string()


def test_the_common_features_are_halides_own() -> None:
    # Finer ones (Zen 5, Sapphire Rapids) Halide takes from the processor model, which no flag tells.
    common = {"sse41", "avx", "avx2", "f16c", "fma", "avx512", "avx512_skylake"}
    of_halide = set(parse_halide_target(host_halide_target()).features)
    assert set(probe_host().features) & common == of_halide & common


def test_this_machine_lacks_nothing_that_halide_finds_in_it() -> None:
    assert lacking_features(host_halide_target(), probe_host()) == ()


def test_halide_is_asked_about_features_that_no_flag_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = "flags\t\t: fpu avx avx2 f16c fma sse4_1 avx_vnni\n"
    host = machine(tmp_path, {"proc/cpuinfo": flags}, frozenset({0}))
    monkeypatch.setattr(
        "halide_autotune.targets.profile.host_probe.host_halide_target", lambda: "x86-64-linux-avx-avx2-avx10_1"
    )
    assert lacking_features("x86-64-linux-avx-avx2-avx10_1-avxvnni-f16c-fma-sse41", host) == ()
    assert lacking_features("x86-64-linux-avx-avx2-x86apx-avx512", host) == ("avx512", "x86apx")


def test_affinity_is_respected() -> None:
    usable = os.sched_getaffinity(0)
    one = min(usable)
    os.sched_setaffinity(0, {one})
    try:
        host = probe_host()
    finally:
        os.sched_setaffinity(0, usable)
    assert host.logical_cores == 1


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    host = probe_host(tmp_path, frozenset({0, 1}))
    assert host.logical_cores == 2
    assert host.cpu_model == ""
    assert host.features == ()
    assert host.memory_bytes is None
    assert usable_memory_bytes(tmp_path) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert host.l1_data_cache_bytes is host.l2_cache_bytes is host.last_level_cache_bytes is None


def test_caches_by_level_and_kind(tmp_path: Path) -> None:
    caches = [(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2048K"), (3, "Unified", "30M")]
    files: dict[str, str] = {}
    for index, (level, kind, size) in enumerate(caches):
        folder = f"sys/devices/system/cpu/cpu3/cache/index{index}"
        files |= {
            f"{folder}/level": f"{level}\n",
            f"{folder}/type": f"{kind}\n",
            f"{folder}/size": f"{size}\n",
        }
    host = machine(tmp_path, files, frozenset({3}))
    assert host.l1_data_cache_bytes == 48 * 1024
    assert host.l2_cache_bytes == 2048 * 1024
    assert host.last_level_cache_bytes == 30 * 1024**2


def test_an_arm_board(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd asimddp asimdhp fphp\n",
        "proc/device-tree/model": "Raspberry Pi 5 Model B\0",
    }
    host = machine(tmp_path, files, frozenset({0}))
    assert host.cpu_model == "Raspberry Pi 5 Model B"
    assert host.features == ("arm_dot_prod", "arm_fp16")


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "300000 100000\n"}, 3),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "max 100000\n"}, 4),
        ({"proc/self/cgroup": "0::/gone\n", "sys/fs/cgroup/unified/cpu.max": "50000 100000\n"}, 1),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/box\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            4,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "nonsense\n"}, 4),
    ],
)
def test_cpu_quota_of_control_groups(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    assert machine(tmp_path, files, frozenset(range(4))).logical_cores == cores


def test_memory_limit_of_control_groups(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemTotal:       16384 kB\n",
        "proc/self/cgroup": "0::/box\n",
        "sys/fs/cgroup/box/memory.max": "4194304\n",
    }
    assert machine(tmp_path, files, frozenset({0})).memory_bytes == 4194304 == usable_memory_bytes(tmp_path)
    (tmp_path / "sys/fs/cgroup/box/memory.max").write_text("max\n")
    assert probe_host(tmp_path, frozenset({0})).memory_bytes == 16384 * 1024
