"""The move that keeps a block of sums in registers."""

from __future__ import annotations

import math
from random import Random

import pytest

from halide_autotune.autotune_loop.draft.edit import loops_of_kind, reorder
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from tests.drafted_pipelines import func, loop, pipeline, plain_draft, read, stage, with_split

LANES = 8
ALONE = {move.name: 0.0 for move in MOVES} | {"register block": 1.0}
ORDERED, UNROLLED, VECTOR = "ordered", LoopKind.UNROLLED, LoopKind.VECTORIZED


def sums(steps: int = 16, width: int = 1, sizes: tuple[str, ...] = ("x", "y")) -> PipelineNames:
    """`sum` adds up so many of `table`, and the output reads `width` of its points.

    Args:
        sizes: the arguments of which each point of a sum is one of its own; a scan lacks one.
    """
    extents = {"x": 64, "y": 48}
    loops = (loop("r$x", steps, ORDERED), *(loop(size, extents[size]) for size in sizes))
    update = stage(read("table", ("x", 1), ("r$x", 1)), loops=loops, is_associative=True)
    return pipeline(
        func("table", (64, steps)),
        func("sum", (64, 48), updates=(update,)),
        func("output", (64, 48), read("sum", ("x", width), ("y", 1))),
    )


def in_vectors(names: PipelineNames) -> Draft:
    """The output in vectors, a sum in each of its rows, and the table in each step of a sum."""
    draft = plain_draft(names, sum=LoopLevel("output", "y"), table=LoopLevel("sum", "r_x"))
    output = with_split(draft.funcs["output"].stages[0], "x", LANES, VECTOR)
    return draft.with_func("output", draft.funcs["output"].with_stage(0, output))


def test_the_steps_of_a_sum_are_around_a_block_of_it_in_many_shapes() -> None:
    names = sums()
    mutation, source, draft = Mutation(names), Random(5), in_vectors(names)
    shapes = set()
    for _ in range(20):
        child = mutation.child(draft, source, ALONE, 1)
        assert child is not None and child.moves == ("register block",)
        check_schedule(schedule_of(child.draft, names, "f"))
        reader, update = child.draft.funcs["output"].stages[0], child.draft.funcs["sum"].stages[1]
        structure = DraftStructure(child.draft, names)
        extents = structure.loop_extents(Site("sum", 1))
        block = loops_of_kind(update, UNROLLED)
        vectors = math.prod(extents[each] for each in block)
        assert 1 < vectors <= names.shape.vector_registers
        assert update.kind(update.order[0]) is VECTOR and extents[update.order[0]] == LANES
        assert update.order[1 : 1 + len(block)] == block and update.order[1 + len(block)] == "r_x"
        unrolled = loops_of_kind(reader, UNROLLED)
        assert reader.order[1 : 1 + len(unrolled)] == unrolled
        assert child.draft.funcs["sum"].compute == LoopLevel("output", reader.order[1 + len(unrolled)])
        of_reader = structure.loop_extents(Site("output", 0))
        assert math.prod(of_reader[each] for each in unrolled) == vectors
        assert structure.region("sum")[0] * structure.region("sum")[1] == LANES * vectors
        shapes.add(structure.region("sum"))
        # The loop where it was computed is gone.
        assert child.draft.funcs["table"].compute in structure.levels("table")
        draft = child.draft if source.random() < 0.5 else draft
    assert len(shapes) >= 5


def test_sums_that_neighbours_read_too_are_cut_themselves() -> None:
    names = sums(width=3)
    draft = plain_draft(names)
    summed = with_split(draft.funcs["sum"].stages[1], "x", LANES, VECTOR)
    draft = draft.with_func("sum", draft.funcs["sum"].with_stage(1, reorder(summed, ("xi", "r_x", "xo", "y"))))
    source, shapes = Random(5), set()
    for _ in range(20):
        child = Mutation(names).child(draft, source, ALONE, 1)
        assert child is not None
        check_schedule(schedule_of(child.draft, names, "f"))
        assert child.draft.funcs["sum"].compute == ROOT
        update = child.draft.funcs["sum"].stages[1]
        block = loops_of_kind(update, UNROLLED)
        assert update.order[: 2 + len(block)] == ("xi", *block, "r_x")
        extents = DraftStructure(child.draft, names).loop_extents(Site("sum", 1))
        shapes.add(tuple(extents[each] for each in block))
    assert len(shapes) >= 5


def test_a_loop_that_a_split_made_is_cut_without_a_rest() -> None:
    names, source = sums(), Random(5)
    counts = set()
    for _ in range(40):
        child = Mutation(names).child(in_vectors(names), source, ALONE, 1)
        assert child is not None
        structure = DraftStructure(child.draft, names)
        counts.add(structure.region("sum")[0] // LANES)
    assert counts == {1, 2, 4, 8}, "there are eight vectors in a row"


@pytest.mark.parametrize(
    "names",
    [sums(steps=3), sums(width=3), sums(sizes=("x",))],
    ids=["few steps", "sums that neighbours read, too, without vectors", "a scan"],
)
def test_what_gains_nothing_is_left(names: PipelineNames) -> None:
    assert Mutation(names).child(in_vectors(names), Random(5), ALONE, 1) is None


def test_sums_that_are_read_without_vectors_are_left() -> None:
    names = sums()
    assert Mutation(names).child(plain_draft(names, sum=ROOT), Random(5), ALONE, 1) is None
