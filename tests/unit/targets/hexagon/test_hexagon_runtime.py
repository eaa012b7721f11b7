"""Halide's runtime for a standalone Hexagon with what is linked beside it, in a real program under QEMU."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import halide as hl
import pytest

from halide_autotune.targets.build.executable import BuildTools, KernelObject, link_executable
from halide_autotune.targets.build.simulated_clock_plugin import build_simulated_clock, simulated_clock_arguments
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain
from tests.unit.targets.conftest import Runner, Workshop
from tests.unit.targets.runner_kernels import compile_kernel

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("qemu-hexagon"), reason="qemu-hexagon is not installed"),
]
PROFILE = load_profile("hexagon-v66")
ONCE = ("--time", "--warm-up-s", "0", "--min-repetitions", "2", "--max-repetitions", "2")


def compile_vectors(folder: Path) -> KernelObject:
    """Parallel rows of HVX vectors, each from a row in memory of its own, with a parallel loop inside the first one."""
    x, y, z = hl.Var("x"), hl.Var("y"), hl.Var("z")
    image, doubled, output = hl.ImageParam(hl.UInt(16), 3, "image"), hl.Func("doubled"), hl.Func("output")
    doubled[x, y, z] = image[x, y, z] * 2
    output[x, y, z] = doubled[x, y, z] + doubled[x + 1, y, z]
    output.parallel(z).parallel(y).vectorize(x, 64)
    doubled.compute_at(output, y).vectorize(x, 64)
    image.set_estimates([(0, 257), (0, 5), (0, 6)])
    output.set_estimates([(0, 256), (0, 5), (0, 6)])
    path = folder / "vectors.o"
    target = hl.Target(f"{PROFILE.halide_target}-no_runtime")
    hl.Pipeline(output).compile_to({hl.OutputFileType.object: str(path)}, [image], "vectors", target)
    return KernelObject("vectors", path)


@pytest.fixture(scope="module")
def hexagon(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("hexagon")
    kernels = [compile_vectors(folder), compile_kernel("requires", PROFILE.halide_target, folder)]
    tools = BuildTools(workshop.halide, workshop.cache, open_toolchain(PROFILE, workshop.cache.root, None))
    executable = link_executable(kernels, PROFILE.halide_target, tools, folder / "batch")
    assert PROFILE.emulator is not None
    return Runner(executable, (PROFILE.emulator.command, *PROFILE.emulator.arguments))


def test_ends_without_a_crash(hexagon: Runner) -> None:
    result = hexagon("--list")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [kernel["name"] for kernel in result.all("kernel")] == ["vectors", "requires"]


@pytest.mark.parametrize("cores", [("--threads", "4"), ("--simulated-cores", "4")], ids=lambda cores: cores[0])
def test_outputs_are_those_of_one_thread(hexagon: Runner, cores: tuple[str, str], tmp_path: Path) -> None:
    alone = hexagon("--kernel", "vectors", "--threads", "1", "--write-reference", tmp_path / "alone")
    assert alone.exit_code == 0, alone
    result = hexagon("--kernel", "vectors", *cores, "--reference", tmp_path / "alone", *ONCE)
    assert result.exit_code == 0 and result.one("compared")["accepted"] is True, result
    assert len(result.one("timed")["repetitions_s"]) == 2


def test_simulated_time_is_equal_in_every_run(hexagon: Runner, workshop: Workshop) -> None:
    plugin = build_simulated_clock({"PATH": os.defpath}, workshop.cache)
    clock = simulated_clock_arguments(plugin, hexagon.emulator[0], PROFILE.machine, 4, marked=True)
    simulated = Runner(hexagon.executable, (*hexagon.emulator, *clock))

    def times_s(cores: int) -> list[float]:
        result = simulated("--kernel", "vectors", "--simulated-cores", str(cores), *ONCE, "--min-repetition-s", "0")
        return list(result.one("timed")["repetitions_s"])

    alone_s = times_s(1)
    assert times_s(1) == alone_s
    # Each row of vectors is more than 40 packets, of a nanosecond's half each.
    assert 30 * 40 * 0.5e-9 < min(alone_s) < 1e-3


def test_halides_errors_are_told(hexagon: Runner) -> None:
    result = hexagon("--kernel", "requires", "--scalar", "divisor=0")
    assert (result.exit_code, result.one("error")["kind"]) == (3, "halide")
    assert "divisor is 0 but must be at least 1" in result.one("error")["message"]
