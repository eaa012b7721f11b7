"""Parallel loops in turn, on cores that are not there. Times are the simulated clock's, so they are exact."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import halide as hl
import pytest

from halide_autotune.targets.build.executable import KernelObject
from halide_autotune.targets.build.simulated_clock_plugin import build_simulated_clock, simulated_clock_arguments
from halide_autotune.targets.profile.profile import MachineParameters
from tests.unit.targets.conftest import X86, Runner, Workshop

MACHINE = MachineParameters(4, 32768, 1048576, 33554432, vector_bits=128)
EMULATOR = ("qemu-x86_64", "-cpu", "max,-erms,-fsrm")
ONCE = ("--time", "--warm-up-s", "0", "--min-repetition-s", "0", "--min-repetitions", "2", "--max-repetitions", "2")
LOOP_START_S = 5e-6


def compile_busy(name: str, outer: int, inner: int, folder: Path) -> KernelObject:
    """`outer` parallel tasks, each with a parallel loop of `inner` tasks of its own where that is more than one."""
    x, y, z = hl.Var("x"), hl.Var("y"), hl.Var("z")
    busy, steps = hl.Func(name), hl.RDom([(0, 4000)], "steps")
    busy[x, y, z] = hl.u32(1)
    busy[x, y, z] = busy[x, y, z] * hl.u32(1664525) + hl.u32(steps)
    output = hl.Func("output")
    output[x, y, z] = busy[x, y, z]
    busy.compute_at(output, x)
    output.parallel(z)
    if inner > 1:
        output.parallel(y)
    output.set_estimates([(0, 1), (0, inner), (0, outer)])
    path = folder / f"{name}.o"
    target = hl.Target(f"{X86.halide_target}-no_runtime")
    hl.Pipeline(output).compile_to({hl.OutputFileType.object: str(path)}, [], name, target)
    return KernelObject(name, path)


@pytest.fixture(scope="module")
def simulated(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    if not shutil.which(EMULATOR[0]):
        pytest.skip(f"{EMULATOR[0]} is not installed")
    folder = tmp_path_factory.mktemp("simulated_cores")
    kernels = [compile_busy(f"busy_{outer}_{inner}", outer, inner, folder) for outer, inner in ((8, 1), (7, 1), (2, 8))]
    executable = workshop.link(kernels, X86, folder / "batch")
    plugin = build_simulated_clock({"PATH": os.defpath}, workshop.cache)
    clock = simulated_clock_arguments(plugin, EMULATOR[0], MACHINE, 1, marked=True)
    return Runner(executable, (*EMULATOR, *clock))


def call_s(runner: Runner, kernel: str, cores: int) -> float:
    """The second of two calls."""
    timed = runner("--kernel", kernel, *ONCE, "--simulated-cores", str(cores)).one("timed")
    return float(timed["repetitions_s"][1])


def test_loop_takes_the_time_of_the_busiest_core(simulated: Runner) -> None:
    alone_s = call_s(simulated, "busy_8_1", 1)
    for cores, rounds in ((2, 4), (3, 3), (4, 2), (8, 1), (16, 1)):
        assert call_s(simulated, "busy_8_1", cores) == pytest.approx(alone_s * rounds / 8 + LOOP_START_S, rel=0.02)


def test_left_over_task_keeps_one_core_busy(simulated: Runner) -> None:
    alone_s = call_s(simulated, "busy_7_1", 1)
    assert call_s(simulated, "busy_7_1", 2) == pytest.approx(alone_s * 4 / 7 + LOOP_START_S, rel=0.02)


def test_inner_loops_get_the_cores_that_are_left(simulated: Runner) -> None:
    alone_s = call_s(simulated, "busy_2_8", 1)
    assert call_s(simulated, "busy_2_8", 2) == pytest.approx(alone_s / 2 + LOOP_START_S, rel=0.02)
    assert call_s(simulated, "busy_2_8", 4) == pytest.approx(alone_s / 4 + 2 * LOOP_START_S, rel=0.02)
    assert call_s(simulated, "busy_2_8", 16) == pytest.approx(alone_s / 16 + 2 * LOOP_START_S, rel=0.02)


def test_equal_in_every_run(simulated: Runner) -> None:
    assert call_s(simulated, "busy_2_8", 4) == call_s(simulated, "busy_2_8", 4)


def test_outputs_are_those_of_threads(runner: Runner, tmp_path: Path) -> None:
    runner("--kernel", "blur_plain", "--write-reference", tmp_path / "ref")
    result = runner("--kernel", "blur_tiled", "--reference", tmp_path / "ref", "--simulated-cores", "3")
    assert result.exit_code == 0
    assert result.one("start")["simulated_cores"] == 3
    assert result.one("compared")["accepted"] is True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--simulated-cores", "2", "--threads", "2"), "cannot be used together"),
        (("--simulated-cores", "257"), "--simulated-cores got 257; expected at most 256."),
        (("--simulated-cores", "few"), "--simulated-cores got 'few'; expected a whole number"),
    ],
)
def test_wrong_use(native_runner: Runner, options: tuple[str, ...], message: str) -> None:
    result = native_runner("--kernel", "blur_plain", *options)
    assert result.exit_code == 2
    assert message in result.one("error")["message"]
