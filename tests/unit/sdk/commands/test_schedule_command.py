"""`sdk schedule show`, for real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.schedule.as_json import parse_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from tests.unit.sdk.commands.conftest import Run

SCHEDULE = Path(__file__).parents[2] / "autotune_loop" / "schedule"
HEADER = SCHEDULE / "headers" / "convolution_layer_py0_cuda_anderson1.schedule.h"
FACTORED = SCHEDULE / "reading" / "generators" / "factored.cpp"


@pytest.fixture
def show(run: Run) -> Run:
    return lambda *arguments: run("schedule", "show", *arguments)


def test_a_header_is_shown_in_every_form(show: Run, tmp_path: Path) -> None:
    assert show(HEADER).out.startswith("schedule of convolution_layer_py0_cuda_anderson1 by Anderson2021 for ")
    assert parse_schedule(show(HEADER, "--format", "cpp").out) == parse_schedule(HEADER.read_text())
    compile(show(HEADER, "--format", "python").out, "schedule.py", "exec")
    as_json = tmp_path / "schedule.json"
    as_json.write_text(show(HEADER, "--format", "json").out)
    assert parse_json(as_json.read_text()) == parse_schedule(HEADER.read_text())
    assert show(as_json).out == show(HEADER).out


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("missing.json", None, "The schedule missing.json cannot be read"),
        ("missing.schedule.h", None, "The schedule header missing.schedule.h cannot be read"),
        ("no.json", "[]", "is not JSON as `sdk schedule show --format json` prints it"),
        ("no.schedule.h", "int x;", "no function `inline void apply_schedule_<name>"),
        ("no.cpp", None, "There is no generator file no.cpp"),
    ],
)
def test_what_is_no_schedule_is_refused_in_one_sentence(
    show: Run, tmp_path: Path, name: str, text: str | None, sentence: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    done = show(name)
    assert (done.code, done.out) == (1, "")
    assert sentence in done.err
    assert show(HEADER, "--format", "prose").code == 2


@pytest.mark.toolchain
def test_a_generators_own_schedule(show: Run) -> None:
    done = show(FACTORED, "--target", "x86-64")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("schedule of factored\n")
    data = json.loads(show(FACTORED, "--target", "x86-64", "--format", "json").out)
    assert {"id": "rows_intm", "rfactor": True} in data["funcs"]


@pytest.mark.toolchain
def test_what_halides_python_lacks_is_said(show: Run) -> None:
    done = show(FACTORED.parent / "expert.cpp", "--format", "python")
    assert done.code == 1
    assert "Halide 21's Python lacks" in done.err
