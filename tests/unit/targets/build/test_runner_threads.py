"""Threads that kernels compute with have a core each, where there are as many as cores."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from halide_autotune.targets.build.executable import RUNNER_DIR
from halide_autotune.targets.halide_install import HalideInstall

PROBE = Path(__file__).parent / "spread_probe.c"
CORES = sorted(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def probe(halide: HalideInstall, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("probe") / "probe"
    sources = [str(PROBE), str(RUNNER_DIR / "usable_cores.c")]
    includes = [f"-I{RUNNER_DIR}", f"-I{halide.include_dir}"]
    subprocess.run(["gcc", "-pthread", *sources, *includes, "-o", str(program)], check=True)
    return program


def cores_of(probe: Path, threads: int, usable: list[int]) -> list[list[int]]:
    """The cores that each thread of the probe may use, the first one's last."""
    done = subprocess.run(
        [str(probe), str(threads - 1)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, usable),
    )
    return [[int(core) for core in line.split()[1:]] for line in done.stdout.splitlines()]


@pytest.mark.skipif(len(CORES) < 2, reason="this machine has one core")
@pytest.mark.parametrize("count", [2, len(CORES)])
def test_as_many_threads_as_cores_have_one_each(probe: Path, count: int) -> None:
    assert sorted(cores_of(probe, count, CORES[:count])) == [[core] for core in CORES[:count]]


@pytest.mark.parametrize("threads", [len(CORES) - 1, len(CORES) + 1])
def test_the_system_places_fewer_or_more(probe: Path, threads: int) -> None:
    threads = max(1, threads)
    found = cores_of(probe, threads, CORES)
    assert found == [CORES] * threads
