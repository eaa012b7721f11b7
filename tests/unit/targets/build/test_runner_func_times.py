"""The runner tells what each Func of a kernel takes, if the kernel was built for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.targets.conftest import X86, Architecture, Runner, Workshop
from tests.unit.targets.runner_kernels import compile_kernel

BLURS = ("blur_plain", "blur_tiled")
PROFILED = Architecture(X86.name, f"{X86.halide_target}-profile", X86.triple, ())


@pytest.fixture(scope="module")
def profiled(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("profiled")
    kernels = [compile_kernel(name, PROFILED.halide_target, folder) for name in BLURS]
    return Runner(workshop.link(kernels, PROFILED, folder / "batch"), ())


def test_the_funcs_of_the_kernel_that_is_called_are_told(profiled: Runner, tmp_path: Path) -> None:
    for kernel in BLURS:
        result = profiled("--kernel", kernel, "--write-reference", tmp_path / "out", "--by-func", "0.05")
        told = result.one("funcs")
        assert result.exit_code == 0 and told["calls"] >= 3 and told["looks"] >= 0
        assert "blurred" in {func["name"].partition("$")[0] for func in told["funcs"]}
        assert sum(func["call_s"] for func in told["funcs"]) <= 1.05 * told["call_s"]
        for func in told["funcs"]:
            assert func.keys() == {"name", "call_s", "threads", "peak_bytes", "stack_bytes", "allocations"}


def test_a_kernel_without_the_profiler_is_refused(native_runner: Runner) -> None:
    result = native_runner("--kernel", "blur_plain", "--by-func", "0.01")
    assert result.exit_code == 2
    assert result.one("error")["message"] == "--by-func needs kernels that are built with the target feature profile."
