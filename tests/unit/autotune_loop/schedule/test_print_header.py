"""What is shipped compiles where what Halide wrote does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.schedule.print_header import mend_header
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

HEADERS = Path(__file__).parent / "headers"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["convolution_layer_py0_host_mulla", "convolution_layer_py0_host_li", "matrix_product_py0_cuda_anderson0"]
)
def test_a_header_that_does_not_compile_is_mended(name: str, cpp_compiler: HostCppCompiler) -> None:
    emitted = (HEADERS / f"{name}.schedule.h").read_text()
    with pytest.raises(GeneratorError, match="does not compile"):
        schedule_autoscheduler(emitted, cpp_compiler)
    schedule_autoscheduler(mend_header(emitted, "tuned"), cpp_compiler)


def test_once_is_enough(emitted: str) -> None:
    once = mend_header(emitted, "tuned")
    assert mend_header(once, "tuned") == once


def test_an_edited_header_keeps_what_was_added() -> None:
    emitted = (HEADERS / "convolution_layer_py0_host_adams1.schedule.h").read_text()
    edited = re.sub(
        r"^}$", "    if (target.bits == 32) output.bound(n, 0, 1);\n}", emitted, count=1, flags=re.MULTILINE
    )
    mended = mend_header(edited, "tuned")
    assert "output.bound(n, 0, 1)" in mended and "apply_schedule_tuned(" in mended


@pytest.mark.parametrize("text", ["", "int main() {}"])
def test_what_is_no_header_is_refused(text: str) -> None:
    with pytest.raises(GeneratorError):
        mend_header(text, "tuned")
