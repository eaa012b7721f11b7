"""What found a candidate."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.autotune_loop.candidate import (
    Origin,
    ParameterPoint,
    Point,
    SchedulePoint,
    SearchPoint,
    found_by,
    technique_of,
)
from halide_autotune.autotune_loop.technique_name import TechniqueName

SAMPLED = SearchPoint(Origin.RANDOM, 1, 32, 80, Path("a.weights"))


@pytest.mark.parametrize(
    ("point", "technique", "told"),
    [
        (SAMPLED, TechniqueName.SAMPLING, "sampling"),
        (ParameterPoint(Origin.PARAMETERS, {}), TechniqueName.SAMPLING, "parameter search"),
        (SchedulePoint(Origin.SKETCH), TechniqueName.SKETCHES, "sketches"),
        (SchedulePoint(Origin.EVOLUTION, ("a",), ("tile",)), TechniqueName.EVOLUTION, "evolution"),
        (SchedulePoint(Origin.PLUG_IN, plug_in="rows-first"), "rows-first", "rows-first"),
    ],
)
def test_a_candidate_belongs_to_the_technique_that_found_it(point: Point, technique: str, told: str) -> None:
    assert (technique_of(point), found_by(point)) == (technique, told)
