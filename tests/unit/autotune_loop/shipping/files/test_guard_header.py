"""The guard, compiled as it is written: the tuned kernel is called for buffers that hold all that it touches, else not.

The kernels are stand-ins that say which regions they touch, as Halide's bounds query does, and that they were called.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.shipping.files.guard_header import KernelArgument, print_guard_header
from halide_autotune.targets.halide_install import HalideInstall

pytestmark = pytest.mark.toolchain

SIGNATURE = (
    KernelArgument("input", "halide_buffer_t", False, ()),
    KernelArgument("gain", "float", False, ()),
    KernelArgument("output", "halide_buffer_t", True, ()),
)
TUNED = """
#include "HalideRuntime.h"
#include <stdio.h>
#include <stdlib.h>
/* Touches [first, end) in both dimensions of the input, and all of the output. */
static int first_x, end_x, first_y, end_y, query_result;
static int scaled_tuned(struct halide_buffer_t *input, float gain, struct halide_buffer_t *output) {
    if (gain != 0.5f) abort();
    if (input->host || output->host) { puts("tuned"); return 0; }
    input->dim[0].min = first_x; input->dim[0].extent = end_x - first_x;
    input->dim[1].min = first_y; input->dim[1].extent = end_y - first_y;
    return query_result;
}
"""
FALLBACK = """
#include "HalideRuntime.h"
#include <stdio.h>
static int scaled_fallback(struct halide_buffer_t *input, float gain, struct halide_buffer_t *output) {
    puts("fallback");
    return 0;
}
"""
# The buffer of the input has the elements from 10 to 20 and from -5 to 5.
MAIN = """
#include "scaled_guard.h"
int main(int count, char **numbers) {
    halide_dimension_t inner[9] = {{10, 10, 1, 0}, {-5, 10, 10, 0}}, outer[2] = {{0, 8, 1, 0}, {0, 8, 8, 0}};
    unsigned char data[100];
    struct halide_buffer_t input = {0}, output = {0};
    input.host = output.host = data;
    input.dim = inner;
    input.dimensions = atoi(numbers[6]);
    output.dim = outer;
    output.dimensions = 2;
    first_x = atoi(numbers[1]); end_x = atoi(numbers[2]); first_y = atoi(numbers[3]); end_y = atoi(numbers[4]);
    query_result = atoi(numbers[5]);
    const int code = scaled_guarded(&input, 0.5f, &output);
    return code || count != 7 || inner[0].min != 10 || inner[1].extent != 10 || !input.host;
}
"""
Called = Callable[..., str]


@pytest.fixture(scope="module")
def called(halide: HalideInstall, tmp_path_factory: pytest.TempPathFactory) -> Called:
    """Which kernel the guard calls, given what the tuned one touches."""
    folder: Path = tmp_path_factory.mktemp("guard")
    texts = {
        "scaled_tuned.h": TUNED,
        "scaled_fallback.h": FALLBACK,
        "scaled_guard.h": print_guard_header("scaled", SIGNATURE),
        "main.c": MAIN,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    includes = [f"-I{folder}", f"-I{halide.include_dir}"]
    command = ["gcc", "-Wall", "-Werror", "-Wno-unused-function", *includes, str(folder / "main.c")]
    subprocess.run([*command, "-o", str(folder / "program")], check=True)

    def get(x: tuple[int, int], y: tuple[int, int], query_result: int = 0, dimensions: int = 2) -> str:
        numbers = [str(number) for number in (*x, *y, query_result, dimensions)]
        done = subprocess.run([str(folder / "program"), *numbers], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return get


def test_the_tuned_kernel_is_called_where_all_that_it_touches_is_there(called: Called) -> None:
    assert called((10, 20), (-5, 5)) == "tuned"
    assert called((12, 13), (0, 1)) == "tuned"


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((9, 20), (-5, 5)),
        ((10, 21), (-5, 5)),
        ((10, 20), (-6, 5)),
        ((10, 20), (-5, 6)),
        ((-(2**31), 20), (-5, 5)),
        ((10, 20), (-5, 2**31 - 10)),
    ],
)
def test_the_fallback_is_called_where_an_element_is_missing(
    called: Called, x: tuple[int, int], y: tuple[int, int]
) -> None:
    assert called(x, y) == "fallback"


def test_the_fallback_is_called_where_nobody_knows_what_is_touched(called: Called) -> None:
    assert called((10, 20), (-5, 5), query_result=-3) == "fallback"
    assert called((10, 20), (-5, 5), dimensions=9) == "fallback", "more than the guard has room for"
