"""Loop nests are read as they were written; what is damaged or of another version is refused."""

from __future__ import annotations

import json

import pytest

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.lowering.loop_nest import (
    VERSION,
    Access,
    Allocation,
    Computation,
    Loop,
    LoopNest,
    parse_loop_nest,
    print_loop_nest,
)

ACCESS = Access("f", 2, ((64.0, 2),), True, False, 8, 4, None, (1.0, 0.5), ((64.0, 256.0),))
COMPUTATION = Computation("f", {"float_add": 2.5}, (ACCESS, Access("g", 1, (), False, True, 1, 1, 0, None)))
INNER = Loop("f.x", "f", "serial", None, 1, (COMPUTATION,), (Allocation("g", None, False, "heap"),), ())
NEST = LoopNest(VERSION, 32, Loop("", "", "root", 1.0, 0, (), (Allocation("h", 64.0, True, "stack"),), (INNER,)))


def test_what_is_written_is_read() -> None:
    assert parse_loop_nest(print_loop_nest(NEST), "a.nest") == NEST


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not valid JSON"),
        ("[]", "table"),
        (print_loop_nest(NEST).replace('"serial"', '"spiral"'), "spiral"),
        (print_loop_nest(NEST).replace('"lanes":8', '"lanes":"8"'), "lanes"),
    ],
)
def test_what_is_damaged_is_refused(text: str, problem: str) -> None:
    with pytest.raises(GeneratorError, match=problem) as caught:
        parse_loop_nest(text, "a.nest")
    assert str(caught.value).startswith("a.nest: ")


def test_another_version_is_refused() -> None:
    newer = {**json.loads(print_loop_nest(NEST)), "version": VERSION + 1}
    with pytest.raises(GeneratorError, match=f"a.nest: its version is {VERSION + 1}, not {VERSION}"):
        parse_loop_nest(json.dumps(newer), "a.nest")
