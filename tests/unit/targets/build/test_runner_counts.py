"""The runner counts what a kernel's Funcs load and store, if the kernel was built for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.targets.conftest import X86, Architecture, Runner, Workshop
from tests.unit.targets.runner_kernels import compile_kernel

TRACED = Architecture(X86.name, f"{X86.halide_target}-trace_loads-trace_stores-trace_realizations", X86.triple, ())
POINTS = 100 * 60


@pytest.fixture(scope="module")
def traced(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("traced")
    kernels = [compile_kernel(name, TRACED.halide_target, folder) for name in ("blur_plain", "blur_tiled")]
    return Runner(workshop.link(kernels, TRACED, folder / "batch"), ())


def counted(runner: Runner, kernel: str, folder: Path) -> dict[str, dict[str, Any]]:
    result = runner("--kernel", kernel, "--write-reference", folder / "out", "--count")
    assert result.exit_code == 0, result.stderr
    return {func["name"].partition("$")[0]: func for func in result.one("counts")["funcs"]}


def test_an_inlined_func_counts_as_what_calls_it(traced: Runner, tmp_path: Path) -> None:
    funcs = counted(traced, "blur_plain", tmp_path)
    blurred = funcs["blurred"]
    assert blurred["points"] == POINTS and blurred["stored"] == {"count": POINTS, "values": POINTS, "bytes": 2 * POINTS}
    assert blurred["loaded"]["count"] == blurred["loaded"]["bytes"] == 9 * POINTS, "three rows of three bytes each"
    assert (blurred["within"], blurred["realizations"], blurred["extents"]) == ("", 1, [100, 60])
    assert blurred["tasks"] == 0 and "rows" not in funcs and "wide" not in funcs


def test_a_func_inside_the_loops_of_another_is_computed_again_and_in_vectors(traced: Runner, tmp_path: Path) -> None:
    funcs = counted(traced, "blur_tiled", tmp_path)
    blurred, rows = funcs["blurred"], funcs["rows"]
    tiles = 4 * 8
    assert rows["within"] == blurred["name"] and rows["realizations"] == tiles
    assert rows["points"] == tiles * 32 * 10, "two more rows than the tile has"
    assert rows["stored"]["values"] == 16 * rows["stored"]["count"] and rows["stored"]["bytes"] == 2 * rows["points"]
    assert rows["loaded"]["values"] == 3 * rows["points"], "of the image"
    assert blurred["loaded"]["values"] == 3 * blurred["points"], "of rows, and not of the image"
    assert blurred["parallel_loops"] == 1 and blurred["tasks"] == 8


def test_a_kernel_without_tracing_is_refused(native_runner: Runner) -> None:
    result = native_runner("--kernel", "blur_plain", "--count")
    assert (
        result.exit_code == 2 and "trace_loads, trace_stores and trace_realizations" in result.one("error")["message"]
    )


def test_nothing_of_the_tracing_is_printed_where_nothing_is_counted(traced: Runner, tmp_path: Path) -> None:
    result = traced("--kernel", "blur_plain", "--write-reference", tmp_path / "out")
    assert result.exit_code == 0 and result.stderr == ""
    assert [event["event"] for event in result.events][-2:] == ["reference", "done"], "each line is an event"
