"""The schedule in a header that `sdk ship` wrote, which first checks the pipeline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.schedule.parse import parse_schedule, parse_shipped_schedule
from halide_autotune.autotune_loop.shipping.files.cpp_headers import print_cpp_header
from halide_autotune.autotune_loop.shipping.files.func_table import FuncRow
from halide_autotune.targets.errors import GeneratorError
from tests.unit.autotune_loop.shipping.files.test_python_module import PROVENANCE

HEADER = (Path(__file__).parent / "headers" / "convolution_layer_py0_cuda_anderson1.schedule.h").read_text()


def test_it_is_the_schedule_that_was_shipped() -> None:
    tuned = parse_schedule(HEADER)
    shipped = print_cpp_header(tuned, "tuned", PROVENANCE, [FuncRow("convolution", 1, 2)])
    assert parse_shipped_schedule(shipped) == replace(tuned, function_name="tuned", provenance=None)
    with pytest.raises(GeneratorError, match="expected .inline."):
        parse_schedule(shipped)
    edited = shipped.replace("    Var ", "    int one = 1;\n    Var ", 1)
    line = edited[: edited.index("int one")].count("\n") + 1
    with pytest.raises(GeneratorError, match=f"Line {line} "):
        parse_shipped_schedule(edited)


def test_other_headers_are_read_as_ever() -> None:
    assert parse_shipped_schedule(HEADER) == parse_schedule(HEADER)
