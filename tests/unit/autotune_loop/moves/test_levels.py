"""What moves of a Func's place do to its loops, and to what is computed in them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from halide_autotune.autotune_loop.draft.edit import split
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from tests.drafted_pipelines import chain, func, pipeline, plain_draft, read, with_split

STRIP, LANES = 8, 16


def children(names: PipelineNames, draft: Draft, move: str, tries: int = 100) -> list[Draft]:
    """Children by one move."""
    mutation, source = Mutation(names), Random(5)
    weights = {each.name: float(each.name == move) for each in MOVES}
    found = [mutation.child(draft, source, weights, 1) for _ in range(tries)]
    return [child.draft for child in found if child is not None]


def in_strips(draft: Draft, name: str) -> Draft:
    """A Func in vectors and in strips of rows, each a task."""
    stage = with_split(draft.funcs[name].stages[0], "x", LANES, LoopKind.VECTORIZED)
    stage, outer, _ = split(stage, "y", STRIP)
    return draft.with_func(name, draft.funcs[name].with_stage(0, stage.with_kind(outer, LoopKind.PARALLEL)))


def long_chain() -> PipelineNames:
    """Three stages of three rows each, then the output (64 x 64)."""
    reads = [read(name, ("x", 1), ("y", 3)) for name in ("a", "b", "c")]
    heights = {"b": 68, "c": 66, "output": 64}
    later = [func(name, (64, heights[name]), of) for name, of in zip(heights, reads, strict=True)]
    return pipeline(func("a", (64, 70)), *later)


@pytest.mark.parametrize("move", ["compute level", "sliding window"])
def test_strips_that_are_longer_than_what_is_needed_are_left_out(move: str) -> None:
    """Three rows of `second`'s eight would be of use."""
    names = chain()
    draft = in_strips(in_strips(plain_draft(names), "second"), "output")
    at_row = LoopLevel("output", "yi")
    found = [child.funcs["second"] for child in children(names, draft, move)]
    assert any(each.compute == at_row for each in found)
    for stage in (each.stages[0] for each in found if each.compute == at_row):
        assert {root for loop in stage.order for root in stage.root_of(loop)} == {"x", "y"}
        assert "y" in stage.order and LoopKind.PARALLEL not in stage.kinds.values()
        assert LoopKind.VECTORIZED in stage.kinds.values(), "vectors stay"


def test_what_goes_to_the_root_takes_its_loops_and_what_is_made_for_it_along() -> None:
    names = long_chain()
    row, strip = LoopLevel("output", "yi"), LoopLevel("output", "yo")
    draft = in_strips(plain_draft(names, a=row, b=row, c=row), "output")
    for name in ("a", "b", "c"):
        draft = draft.with_func(name, replace(draft.funcs[name], store=strip))
    parted = [child for child in children(names, draft, "compute level") if child.funcs["b"].compute == ROOT]
    assert parted
    for child in parted:
        assert child.funcs["b"].stages[0].order == draft.funcs["output"].stages[0].order
        assert child.funcs["b"].stages[0].kinds == draft.funcs["output"].stages[0].kinds
        first = child.funcs["a"]
        assert (first.compute, first.store) == (LoopLevel("b", "yi"), LoopLevel("b", "yo")), "its window still slides"
        assert child.funcs["c"] == draft.funcs["c"], "which the output reads"


def test_where_loops_are_others_the_outermost_is_in_parallel() -> None:
    names = pipeline(func("table", (64, 48, 4)), func("output", (64, 48), read("table", ("x", 1), ("y", 1), (None, 4))))
    draft = in_strips(plain_draft(names, table=LoopLevel("output", "yi")), "output")
    moved = [child for child in children(names, draft, "compute level") if child.funcs["table"].compute == ROOT]
    assert moved
    for child in moved:
        assert child.funcs["table"].stages[0].kinds == {"z": LoopKind.PARALLEL}


def test_what_was_in_the_loops_of_an_inlined_func_stays_in_those_around() -> None:
    names = long_chain()
    row = LoopLevel("output", "y")
    draft = plain_draft(names, c=row, b=LoopLevel("c", "y"), a=ROOT)
    changed = Mutation(names).changed(draft, draft.with_func("c", replace(draft.funcs["c"], compute=None)))
    assert changed is not None and changed.funcs["c"].is_inlined and changed.funcs["b"].compute == row


@pytest.mark.parametrize("move", ["parallel", "fuse"])
def test_tasks_have_more_than_a_few_points(move: str) -> None:
    names = chain()
    output = with_split(plain_draft(names).funcs["output"].stages[0], "x", LANES, LoopKind.VECTORIZED)
    draft = plain_draft(names)
    for name in ("first", "second", "output"):
        draft = draft.with_func(name, draft.funcs[name].with_stage(0, output))
    for child in children(names, draft, move):
        for stage in (each.stages[0] for each in child.funcs.values()):
            tasks = [loop for loop in stage.order if stage.kind(loop) is LoopKind.PARALLEL]
            inside = stage.order[: stage.order.index(tasks[0])] if tasks else ()
            assert not tasks or len(inside) > 1, "not one vector"


def test_a_loop_over_the_vectors_variable_is_no_other_vector() -> None:
    names = chain()
    draft = plain_draft(names)
    stage = with_split(draft.funcs["output"].stages[0], "x", LANES, LoopKind.VECTORIZED)
    for name in ("first", "second", "output"):
        draft = draft.with_func(name, draft.funcs[name].with_stage(0, stage))
    vectors = {
        stage.root_of(loop)
        for child in children(names, draft, "vectorize")
        for name, func in child.funcs.items()
        if func != draft.funcs[name]
        for stage in func.stages
        for loop in stage.order
        if stage.kind(loop) is LoopKind.VECTORIZED
    }
    assert vectors == {("y",)}
