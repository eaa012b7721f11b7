"""What is computed at a loop that a move splits."""

from __future__ import annotations

from random import Random

import pytest

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import Site
from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from halide_autotune.autotune_loop.schedule.directives import Split
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from tests.drafted_pipelines import chain, func, loop, pipeline, plain_draft, read, stage

TRIES = 200


def children(names: PipelineNames, draft: Draft, move: str, site: Site, split: str) -> list[Draft]:
    """Children by one move in which it has split a loop of a stage."""
    mutation, source, found = Mutation(names), Random(3), []
    weights = {each.name: float(each.name == move) for each in MOVES}
    for _ in range(TRIES):
        child = mutation.child(draft, source, weights, 1)
        made = () if child is None else child.draft.funcs[site.func].stages[site.stage].transforms
        if child is not None and any(isinstance(each, Split) and each.old == split for each in made):
            found.append(child.draft)
    assert found
    return found


@pytest.mark.parametrize("move", ["split", "tile", "unroll", "vectorize"])
def test_it_stays_around_what_was_inside_of_the_loop(move: str) -> None:
    """One row at a time, or several; not each point by itself."""
    names = chain()
    draft = plain_draft(names, second=LoopLevel("output", "y"), first=ROOT)
    levels = set()
    for child in children(names, draft, move, Site("output", 0), "y"):
        output, level = child.funcs["output"].stages[0], child.funcs["second"].compute
        assert level is not None and level.variable is not None
        rows = [each for each in output.order if output.root_of(each) == ("y",)]
        assert level.variable in rows
        if move != "tile":
            within = output.order[: output.order.index(level.variable)]
            assert {root for each in within for root in output.root_of(each)} >= {"x"}
        levels.add(rows.index(level.variable))
    assert levels == {"split": {0, 1}, "unroll": {0, 1}, "tile": {1}, "vectorize": {1}}[move]


def test_what_another_stage_reads_keeps_its_loop() -> None:
    """The stages of a Func have loops of the same names."""
    extents = {"x": 64, "y": 48}
    loops = (loop("r$x", 4, "ordered"), *(loop(each, extents[each]) for each in extents))
    update = stage(read("table", ("x", 1), ("y", 1)), loops=loops, is_associative=True)
    names = pipeline(
        func("table", (64, 48)),
        func("sum", (64, 48), updates=(update,)),
        func("output", (64, 48), read("sum", ("x", 1), ("y", 1))),
    )
    at_row = LoopLevel("sum", "y")
    draft = plain_draft(names, sum=ROOT, table=at_row)
    assert {child.funcs["table"].compute for child in children(names, draft, "split", Site("sum", 0), "y")} == {at_row}
    levels = {child.funcs["table"].compute for child in children(names, draft, "split", Site("sum", 1), "y")}
    assert levels == {LoopLevel("sum", "yi"), LoopLevel("sum", "yo")}
