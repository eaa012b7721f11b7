"""What a user asks to tune, against what the generator declares: one clear sentence for each mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from halide_autotune.autotune_loop.parameters.declared_space import declared_space
from halide_autotune.autotune_loop.parameters.space import ParameterSpace
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.declared_parameter import DeclaredParameter, ParameterKind

DECLARED = {
    "tile_x": DeclaredParameter(ParameterKind.INTEGER, "64"),
    "tile_y": DeclaredParameter(ParameterKind.INTEGER, "32"),
    "fuse": DeclaredParameter(ParameterKind.BOOLEAN, "true", ("true", "false")),
    "order": DeclaredParameter(ParameterKind.CHOICE, "rows", ("rows", "tiles")),
    "width": DeclaredParameter(ParameterKind.INTEGER, "1536"),
}


def space(tune: Mapping[str, str], *restrict: str, given: Mapping[str, str] | None = None) -> ParameterSpace | None:
    return declared_space(tune, restrict, given or {}, DECLARED, "box")


def test_the_defaults_and_other_parameters_come_from_the_generator() -> None:
    found = space({"tile_x": "16..512:x2", "fuse": "true,false"}, "tile_x <= width / 4", given={"width": "256"})
    assert found is not None and found.listed is not None
    assert found.defaults == {"tile_x": "64", "fuse": "true"} and found.others == {"width": "256"}
    assert {one["tile_x"] for one in found.listed} == {"16", "32", "64"}
    assert space({}) is None


@pytest.mark.parametrize(
    ("arguments", "message", "next_step"),
    [
        (
            {"tune": {"tilex": "8,16"}},
            "--tune tilex=8,16: generator box has no parameter 'tilex'; the nearest is 'tile_x'.",
            "It has tile_x, tile_y, fuse, order, width.",
        ),
        (
            {"tune": {"tile_x": "8,16"}, "given": {"tile_x": "32"}},
            "The parameter tile_x is tuned, and is also given as -p tile_x=32.",
            "Leave out one of the two.",
        ),
        (
            {"tune": {"order": "rows,columns"}},
            "The generator parameter order cannot be columns.",
            "It takes rows, tiles.",
        ),
        ({"tune": {"tile_x": "0.5,1"}}, "The generator parameter tile_x takes a whole number, not 0.5.", ""),
        ({"tune": {"fuse": "0,1"}}, "The generator parameter fuse cannot be 0.", "It takes true, false."),
        (
            {"tune": {"tile_x": "8,16"}, "restrict": ["tile_x * tiley < 9"]},
            "--restrict \"tile_x * tiley < 9\": generator box has no parameter 'tiley'; the nearest is 'tile_y'.",
            "It has tile_x, tile_y, fuse, order, width.",
        ),
        (
            {"tune": {"tile_x": "8,16"}, "restrict": ["tile_x > 16"]},
            "The restrictions exclude every one of the 2 parameter sets.",
            "Change a --restrict, or the values of a --tune.",
        ),
        (
            {"tune": {}, "restrict": ["tile_x > 16"]},
            '--restrict "tile_x > 16" has no parameter to restrict.',
            "Give one with --tune.",
        ),
    ],
)
def test_each_mistake_has_a_sentence(arguments: dict[str, Any], message: str, next_step: str) -> None:
    with pytest.raises(UsageError) as caught:
        space(arguments["tune"], *arguments.get("restrict", ()), given=arguments.get("given"))
    assert (caught.value.message, caught.value.next_step) == (message, next_step)
