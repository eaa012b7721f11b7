"""The example with a schedule for a size: built by its Makefile and by CMake, and run at several sizes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from halide_autotune.sdk import check_shipped
from halide_autotune.sdk.settings import Settings
from tests.cmake_tool import CMAKE

PACKAGE = Path(__file__).parents[2] / "sdk" / "cmake_package"
# What every x86-64 machine that runs the tests has, with the features of the example's schedules.
TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41"
KERNELS = ("soften_at_any_size", "soften_at_96x64")
COUNTER = """
#include <stdio.h>
struct halide_buffer_t { unsigned long device; void *device_interface; unsigned char *host; };
int __real_KERNEL(struct halide_buffer_t *input, struct halide_buffer_t *output);
int __wrap_KERNEL(struct halide_buffer_t *input, struct halide_buffer_t *output) {
    if (input->host) fprintf(stderr, "KERNEL\\n"); /* a bounds query has no memory */
    return __real_KERNEL(input, output);
}
"""


def run(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=1500, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(autouse=True)
def in_session_folders(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in settings.environment.items():
        monkeypatch.setenv(key, value)


def expected(width: int, height: int) -> int:
    """What show_soften prints of a size, by NumPy."""
    x, y = numpy.meshgrid(numpy.arange(width), numpy.arange(height))
    image = (7 * x + 13 * y) % 251
    padded = numpy.pad(image, 4, mode="edge")
    down = numpy.sum([padded[k : k + height] for k in range(9)], axis=0)
    across = numpy.sum([down[:, k : k + width] for k in range(9)], axis=0) // 81
    mixed = numpy.minimum((across * 3 + image * 2) // 4, 255)
    return int((mixed * (x + 3 * y + 1)).sum())


@pytest.fixture(scope="module")
def printed() -> str:
    return "".join(f"{width}x{height}: {expected(width, height)}\n" for width, height in SIZES)


SIZES = ((96, 64), (1920, 1080), (333, 222))


def test_what_is_committed_fits_the_generator(examples: Path, settings: Settings) -> None:
    folder = examples / "sizes"
    checked = check_shipped(folder / "schedules", generators=[str(folder / "soften.cpp")], settings=settings)
    assert (checked.problems, checked.schedules) == ((), 2)


@pytest.mark.slow
def test_by_make_each_call_runs_the_kernel_of_its_size(examples: Path, tmp_path: Path, printed: str) -> None:
    """In a generator that schedules itself without a guard."""
    objects = []
    for kernel in KERNELS:
        source, made = tmp_path / f"{kernel}_counter.c", tmp_path / f"{kernel}_counter.o"
        source.write_text(COUNTER.replace("KERNEL", kernel))
        run("cc", "-c", source, "-o", made)
        objects.append(str(made))
    flags = " ".join([*objects, *(f"-Wl,--wrap={kernel}" for kernel in KERNELS)])
    build = tmp_path / "build"
    made_by = [f"PYTHON={sys.executable}", f"BUILD={build}", f"TARGET={TARGET}", f"LDFLAGS={flags}"]
    run("make", *made_by, cwd=examples / "sizes")
    done = run(build / "show_soften")
    assert done.stdout == printed
    # 333x222 is 12 times as large as 96x64, and 1920x1080 is 28 times as large as that.
    assert done.stderr.split() == ["soften_at_96x64", "soften_at_any_size", "soften_at_96x64"]


@pytest.mark.slow
def test_by_cmake_the_generator_is_not_changed(examples: Path, tmp_path: Path, printed: str) -> None:
    where = [f"-DHalideAutotune_DIR={PACKAGE}", f"-DHalideAutotune_SDK={Path(sys.executable).with_name('sdk')}"]
    build = tmp_path / "build"
    told = run(CMAKE, "-S", examples / "sizes", "-B", build, *where, f"-DSOFTEN_TARGET={TARGET}").stdout
    assert "HalideAutotune: soften: kernels for 96x64 and for all sizes, chosen in each call." in told
    run(CMAKE, "--build", build)
    assert run(build / "show_soften").stdout == printed
    # Made with other schedules, and not twice from one.
    codes = [(build / f"{kernel}.o").read_bytes().replace(kernel.encode(), b"") for kernel in KERNELS]
    assert codes[0] != codes[1]
    assert not os.path.exists(build / "soften.o")


def test_by_size_is_for_one_target(examples: Path, tmp_path: Path) -> None:
    where = [f"-DHalideAutotune_DIR={PACKAGE}", f"-DHalideAutotune_SDK={Path(sys.executable).with_name('sdk')}"]
    several = f"-DSOFTEN_TARGET={TARGET}-no_asserts;{TARGET}"
    done = subprocess.run(
        [CMAKE, "-S", examples / "sizes", "-B", tmp_path / "build", *where, several],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "BY_SIZE is for a library of one target, not of 2" in " ".join(done.stderr.split())
