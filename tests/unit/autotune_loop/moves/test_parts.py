"""The move that takes a reduction apart, and then into other parts."""

from __future__ import annotations

from random import Random

import pytest

from halide_autotune.autotune_loop.draft.factor import is_taken_apart
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import Split
from halide_autotune.targets.pipeline.shape import FuncShape
from tests.unit.autotune_loop.draft.test_factor import COLUMNS, HISTOGRAM, MEANS, SUM, TOTAL, reduction, structure_of

ALONE = {move.name: 0.0 for move in MOVES} | {"rfactor": 1.0}


@pytest.mark.parametrize("shape", [TOTAL, HISTOGRAM, MEANS, COLUMNS], ids=["total", "histogram", "means", "columns"])
def test_a_long_reduction_is_taken_apart_in_many_ways(shape: FuncShape) -> None:
    structure = structure_of(shape)
    mutation, source, draft = Mutation(structure.names), Random(5), structure.draft
    ways = set()
    for _ in range(20):
        child = mutation.child(draft, source, ALONE, 1)
        assert child is not None and child.moves == ("rfactor",) and is_taken_apart(child.draft, SUM)
        draft = child.draft
        check_schedule(schedule_of(draft, structure.names, "f"))
        assert set(draft.funcs) == {SUM, f"{SUM}_part", f"{SUM}_parts"}
        splits = [each for each in draft.funcs[SUM].frozen[0].directives if isinstance(each, Split)]
        ways.add(tuple(split.factor for split in splits))
    assert len(ways) >= 5


def test_a_short_one_is_left_whole() -> None:
    structure = structure_of(reduction({}, {"r$x": 5, "r$y": 5}, ()))
    assert Mutation(structure.names).child(structure.draft, Random(5), ALONE, 3) is None
