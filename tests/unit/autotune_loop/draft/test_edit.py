"""A change of one stage's loops reaches everything that names them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.draft.edit import (
    fuse,
    loops_of_kind,
    move_to,
    new_loop,
    redirect,
    reorder,
    split,
    undo,
    with_factor,
    with_stage,
)
from halide_autotune.autotune_loop.draft.model import LoopKind, StageDraft
from halide_autotune.autotune_loop.schedule.directives import (
    Atomic,
    ComputeWith,
    Fuse,
    PartitionLoop,
    Prefetch,
    Split,
)
from halide_autotune.autotune_loop.schedule.values import (
    ROOT,
    LoopAlignStrategy,
    LoopLevel,
    Partition,
    Source,
    Stage,
    TailStrategy,
)
from tests.drafted_pipelines import chain, plain_draft

PLAIN = StageDraft((), ("x", "y", "c"))


def test_a_split_puts_both_loops_in_the_place_of_one_and_the_outer_has_its_kind() -> None:
    stage, outer, inner = split(PLAIN.with_kind("y", LoopKind.PARALLEL), "y", 8, TailStrategy.ROUND_UP)
    assert (outer, inner) == ("yo", "yi")
    assert stage.order == ("x", "yi", "yo", "c")
    assert stage.transforms == (Split("y", "yo", "yi", 8, TailStrategy.ROUND_UP),)
    assert stage.kinds == {"yo": LoopKind.PARALLEL}
    assert stage.root_of("yi") == stage.root_of("yo") == ("y",)


def test_no_loop_has_a_name_that_another_had() -> None:
    stage, *_ = split(PLAIN, "x", 8)
    again = undo(stage, stage.transforms[0])
    assert again is not None and new_loop(again[0], "xo") == "xo", "it is free again"
    twice, outer, inner = split(stage, "xo", 4)
    assert (outer, inner) == ("xoo", "xoi")
    assert new_loop(twice, "x") == "x_" and new_loop(twice, "xo") == "xo_", "they were split"
    assert new_loop(twice, "fresh") == "fresh"


def test_no_loop_has_a_name_that_is_a_word_of_cpp_or_python() -> None:
    stage, outer, inner = split(StageDraft((), ("d",)), "d", 8)
    assert (outer, inner) == ("do_", "di")
    assert new_loop(stage, "do") == "do__"


def test_a_fusion_is_in_the_place_of_the_inner_loop_and_serial() -> None:
    stage, fused = fuse(PLAIN.with_kind("c", LoopKind.PARALLEL).with_kind("x", LoopKind.UNROLLED), "y", "c")
    assert stage.order == ("x", fused) and stage.transforms == (Fuse("y", "c", fused),)
    assert stage.kinds == {"x": LoopKind.UNROLLED}
    assert stage.root_of(fused) == ("y", "c")


def test_a_split_that_is_undone_leaves_the_loop_where_the_outer_one_was() -> None:
    stage, outer, inner = split(PLAIN, "x", 8)
    stage = move_to(stage, outer, 3).with_kind(outer, LoopKind.PARALLEL).with_kind(inner, LoopKind.VECTORIZED)
    found = undo(stage, stage.transforms[0])
    assert found is not None
    undone, gone = found
    assert undone == StageDraft((), ("y", "c", "x"), {"x": LoopKind.PARALLEL})
    assert gone == {"xo": "x", "xi": "x"}


def test_a_fusion_that_is_undone_leaves_both_loops_in_its_place() -> None:
    stage, fused = fuse(PLAIN, "x", "y")
    found = undo(stage.with_kind(fused, LoopKind.PARALLEL), stage.transforms[0])
    assert found == (PLAIN, {fused: "y"})


def test_what_something_was_made_of_is_not_undone() -> None:
    stage, outer, _ = split(PLAIN, "x", 8)
    first = stage.transforms[0]
    for used, *_ in (split(stage, outer, 2), fuse(stage, outer, "y")):
        assert undo(used, first) is None
        last = undo(used, used.transforms[-1])
        assert last is not None and undo(last[0], first) is not None, "from the last on"


def test_another_factor_is_of_one_split_only() -> None:
    stage, *_ = split(PLAIN, "x", 8)
    stage, *_ = split(stage, "y", 8)
    changed = with_factor(stage, stage.transforms[1], 16)  # type: ignore[arg-type]  # it is a split
    assert [each.factor for each in changed.transforms if isinstance(each, Split)] == [8, 16]
    assert changed.order == stage.order


def test_loops_move_without_any_being_lost() -> None:
    assert move_to(PLAIN, "c", 0).order == ("c", "x", "y")
    assert move_to(PLAIN, "x", 2).order == ("y", "c", "x")
    assert reorder(PLAIN, ["y", "x", "c"]).order == ("y", "x", "c")
    with pytest.raises(AssertionError):
        reorder(PLAIN, ["x", "y"])


def test_loops_of_a_kind_come_from_the_inside() -> None:
    stage = PLAIN.with_kind("c", LoopKind.PARALLEL).with_kind("x", LoopKind.VECTORIZED).with_kind("y", None)
    assert loops_of_kind(stage, LoopKind.PARALLEL, LoopKind.VECTORIZED) == ("x", "c")
    assert stage.first_of_kind(LoopKind.PARALLEL) == "c" and stage.first_of_kind(LoopKind.UNROLLED) is None
    assert stage.with_kind("c", None).kind("c") is None


def test_what_is_at_a_loop_that_is_undone_is_at_the_one_that_is_left() -> None:
    output = split(StageDraft((), ("x", "y")), "y", 8)[0]
    draft = plain_draft(chain(), first=LoopLevel("output", "yi"), second=LoopLevel("output", "yo"))
    draft = with_stage(draft, "output", 0, output)
    stored = replace(draft.funcs["first"], store=LoopLevel("output", "yo"))
    draft = draft.with_func("first", stored)
    found = undo(output, output.transforms[0])
    assert found is not None
    undone = with_stage(draft, "output", 0, *found)
    assert undone.funcs["first"].compute == undone.funcs["first"].store == LoopLevel("output", "y")
    assert undone.funcs["second"].compute == LoopLevel("output", "y")
    assert undone.funcs["output"].compute == ROOT


def test_only_loops_of_that_func_are_redirected() -> None:
    draft = plain_draft(chain(), first=LoopLevel("second", "y"), second=LoopLevel("output", "y"))
    moved = redirect(draft, "output", {"y": "yo"})
    assert moved.funcs["second"].compute == LoopLevel("output", "yo")
    assert moved.funcs["first"].compute == LoopLevel("second", "y")
    assert redirect(draft, "output", {"x": "xo"}) == draft


def test_directives_for_loops_that_are_gone_go_with_them() -> None:
    stage, *_ = split(StageDraft((), ("x", "y")), "y", 8)
    aligned = (("yo", LoopAlignStrategy.ALIGN_START),)
    kept = (
        PartitionLoop("x", Partition.NEVER),
        Atomic(),
        Prefetch(Source("first"), "x", "x", 2),
        ComputeWith(Stage("second"), "x"),
    )
    lost = (
        PartitionLoop("yo", Partition.NEVER),
        Prefetch(Source("first"), "x", "yi", 2),
        Prefetch(Source("first"), "yi", "x", 2),
        ComputeWith(Stage("second"), "x", aligned),
    )
    stage = StageDraft(stage.transforms, stage.order, {}, (*lost, *kept))
    draft = plain_draft(chain())
    assert with_stage(draft, "output", 0, stage).funcs["output"].stages[0].also == (*lost, *kept), "nothing is gone yet"
    found = undo(stage, stage.transforms[0])
    assert found is not None
    assert with_stage(draft, "output", 0, *found).funcs["output"].stages[0].also == kept
