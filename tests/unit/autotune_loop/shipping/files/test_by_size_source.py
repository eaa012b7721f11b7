"""The C source that calls the kernel for the size of a call."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.shipping.files.by_size_source import print_by_size_source
from halide_autotune.autotune_loop.shipping.files.guard_header import KernelArgument
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.halide_install import HalideInstall

PICTURE = ((0, 640), (0, 480))
SIGNATURE = (
    KernelArgument("image", "halide_buffer_t", False, PICTURE),
    KernelArgument("gain", "float", False, ()),
    KernelArgument("user.data", "void *", False, ()),
    KernelArgument("counts", "halide_buffer_t", True, ((0, 256),)),
)
GENERAL = SizeSchedule("image=640x480", "image", "640x480", "batch_0_0/1", "s1", "", "", "It wins.")
OWN = replace(GENERAL, size="image=64x48", extents="64x48", header="best.count.at_64x48.schedule.h")


def test_an_input_decides_where_outputs_are_alike() -> None:
    text = print_by_size_source("count", "count", SIGNATURE, [GENERAL, OWN])
    assert "switch (nearest_size(a0_image)) {\n        case 1:\n" in text
    assert "sizes[2][2] = {{640, 480}, {64, 48}};" in text
    assert "case 0:" not in text and "count_at_640x480" not in text, "that size has no kernel of its own"
    assert "return count_at_any_size(a0_image, a1_gain, a2_user_data, a3_counts);" in text
    assert "*(float *)args[1], *(void * *)args[2], (struct halide_buffer_t *)args[3]" in text


@pytest.mark.toolchain
@pytest.mark.parametrize("language", ["c", "c++"])
def test_it_is_c_and_cpp(halide: HalideInstall, tmp_path: Path, language: str) -> None:
    source = tmp_path / "by_size.c"
    source.write_text(print_by_size_source("count", "count_tuned", SIGNATURE, [GENERAL, OWN]))
    standard = "-std=c11" if language == "c" else "-std=c++17"
    command = ["c++" if language == "c++" else "cc", "-x", language, standard, "-Wall", "-Wextra", "-Werror", "-c"]
    made = tmp_path / "by_size.o"
    done = subprocess.run(
        [*command, source, f"-I{halide.include_dir}", "-o", made], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    defined = subprocess.run(["nm", "--defined-only", "-g", made], capture_output=True, text=True, check=True).stdout
    names = {name for line in defined.splitlines() if (name := line.split()[-1]).startswith("count")}
    assert names == {"count_tuned", "count_tuned_argv", "count_tuned_metadata"}


def test_a_kernel_without_the_argument_is_refused() -> None:
    with pytest.raises(GeneratorError, match="has no buffer mask, by whose size"):
        print_by_size_source("count", "count", SIGNATURE, [replace(OWN, argument="mask")])
