"""Kernels that call functions of the user's: in C, in C++ and from objects, on this machine and on another."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import sdk
from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import ToolchainError, UsageError
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.options import with_values

pytestmark = pytest.mark.toolchain

Tune = Callable[..., TuneResult]

# Calls a function for each value.
CURVED = """
#include "Halide.h"
HalideExtern_1(float, curve, float);
struct Curved : Halide::Generator<Curved> {
    Input<Buffer<float, 2>> input{"input"};
    Output<Buffer<float, 2>> output{"output"};
    void generate() {
        Var x("x"), y("y");
        Func sum("sum"), in = Halide::BoundaryConditions::repeat_edge(input);
        sum(x, y) = in(x, y) + in(x + 1, y);
        output(x, y) = curve(sum(x, y) + sum(x, y + 1));
        input.set_estimates({{0, 256}, {0, 128}});
        output.set_estimates({{0, 256}, {0, 128}});
    }
};
HALIDE_REGISTER_GENERATOR(Curved, curved)
"""
CURVE_C = '#include "top.h"\nfloat curve(float x) { return x * (TOP - x); }\n'
# A stage that the user's function computes, which reads the buffer of the stage before.
STAGED = """
import halide as hl

x, y = hl.Var("x"), hl.Var("y")


@hl.generator(name="staged")
class Staged(hl.Generator):
    image = hl.InputBuffer(hl.UInt(8), 2)
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self):
        first, tripled = hl.Func("first"), hl.Func("tripled")
        first[x, y] = self.image[x, y] + hl.u8(1)
        tripled.define_extern("triple", [hl.ExternFuncArgument(first)], hl.UInt(8), 2)
        self.output[x, y] = tripled[x, y] / 2
        self.image.set_estimates([(0, 64), (0, 32)])
        self.output.set_estimates([(0, 64), (0, 32)])
        if not self.using_autoscheduler():
            first.compute_root()
            tripled.compute_root()
"""
TRIPLE_CPP = """
#include <vector>
#include "HalideBuffer.h"
extern "C" int triple(halide_buffer_t *in, halide_buffer_t *out) {
    if (in->is_bounds_query()) {
        for (int d = 0; d < 2; d++) in->dim[d] = out->dim[d];
        return 0;
    }
    Halide::Runtime::Buffer<uint8_t> from(*in), to(*out);
    const std::vector<int> factors(1, 3);
    to.for_each_element([&](int x, int y) { to(x, y) = (uint8_t)(from(x, y) * factors[0]); });
    return 0;
}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {"curved.cpp": CURVED, "curve.c": CURVE_C, "top.h": "#define TOP 3.0f\n", "staged.py": STAGED}
    for name, text in {**files, "triple.cpp": TRIPLE_CPP}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_run_with_a_function_in_c(tune: Tune, project: Path) -> None:
    generator = sdk.GeneratorSpec(str(project / "curved.cpp"), build=CppBuild(kernel_sources=(project / "curve.c",)))
    result = tune([generator], rounds=1, batch_size=3, pool_factor=1, run_folder=project / "run")
    assert result.outcome is Outcome.FINISHED and result.totals.samples_timed >= 3
    assert f'kernel_sources = ["{project}/curve.c"]' in (project / "run/run.toml").read_text()


@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-aarch64 is not installed")
def test_a_benchmark_for_another_machine(settings: Settings, project: Path) -> None:
    made = sdk.build(
        sdk.GeneratorSpec(str(project / "curved.cpp"), build=CppBuild(kernel_sources=(project / "curve.c",))),
        project / "built",
        target="arm64",
        settings=settings,
    )
    command = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", str(made.benchmark), "--kernel", "curved"]
    events = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert json.loads(events[-1]) == {"event": "done"}


def test_an_extern_stage_in_cpp_is_timed_with_its_own_schedule(settings: Settings, project: Path) -> None:
    build = CppBuild(kernel_sources=(project / "triple.cpp",))
    generator = sdk.GeneratorSpec(str(project / "staged.py"), build=build)
    (own,) = sdk.bench(generator, turns=1, settings=settings)
    assert own.failure is None and own.median_ms is not None


def test_an_object_is_linked_as_it_is(settings: Settings, project: Path) -> None:
    made = project / "curve.o"
    subprocess.run(["gcc", "-O2", "-c", str(project / "curve.c"), "-o", str(made)], check=True)
    built = sdk.build(
        sdk.GeneratorSpec(str(project / "curved.cpp"), build=CppBuild(kernel_sources=(made,))),
        project / "built",
        settings=settings,
    )
    subprocess.run([str(built.benchmark), "--kernel", "curved"], check=True, stdout=subprocess.DEVNULL)
    assert file_sha256(built.object)


def test_what_is_missing_is_named(settings: Settings, project: Path) -> None:
    with pytest.raises(ToolchainError, match="The kernels call curve, which nothing that is linked") as found:
        sdk.build(str(project / "curved.cpp"), project / "built", settings=settings)
    assert "--kernel-source" in found.value.next_step
    assert not (project / "built").exists()
    with pytest.raises(UsageError, match=r"staged.py is no C or C\+\+ source, object or static library"):
        with_values(CppBuild(), {"kernel_sources": [str(project / "staged.py")]})
