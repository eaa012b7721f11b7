"""A changed draft becomes one that Halide may take, and stays as it is where it is one already."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.repair import repair, repaired_child
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.schedule.directives import Atomic, ComputeAt, ComputeWith, Prefetch, Split, StoreIn
from halide_autotune.autotune_loop.schedule.model import Clone, StageSchedule, Wrapper
from halide_autotune.autotune_loop.schedule.values import (
    ROOT,
    Expression,
    LoopLevel,
    MemoryType,
    Source,
    Stage,
    TailStrategy,
)
from tests.drafted_pipelines import (
    RECORDED,
    chain,
    func,
    header_drafts,
    pipeline,
    plain_draft,
    read,
    recorded,
    starting_drafts,
    with_split,
)

VECTOR, UNROLLED, PARALLEL = LoopKind.VECTORIZED, LoopKind.UNROLLED, LoopKind.PARALLEL


def shared() -> PipelineNames:
    """`left` and `right` are alike, and the output reads both; `first` is read by both."""
    sides = [func(name, (64, 32), read("first", ("x", 1), ("y", 1))) for name in ("left", "right")]
    reads = [read(name, ("x", 1), ("y", 1)) for name in ("left", "right")]
    return pipeline(func("first", (64, 32)), *sides, func("output", (64, 32), *reads))


def with_stage(draft: Draft, name: str, stage: StageDraft) -> Draft:
    return draft.with_func(name, draft.funcs[name].with_stage(0, stage))


def splits_of(stage: StageDraft) -> list[Split]:
    return [made for made in stage.transforms if isinstance(made, Split)]


def with_copy(draft: Draft, name: str, origin: Wrapper | Clone, compute: LoopLevel | None = ROOT) -> Draft:
    return draft.with_func(name, FuncDraft(compute, (StageDraft((), ("x", "y")),), origin=origin))


@pytest.mark.parametrize("name", RECORDED)
def test_what_halide_took_stays_as_it_is(name: str) -> None:
    for draft in header_drafts(name):
        assert repair(draft, recorded(name)) == draft


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_repaired_needs_no_more_repair(name: str) -> None:
    names = recorded(name)
    for draft in starting_drafts(name)[::4]:
        for gone in draft.funcs:
            inlined = draft.with_func(gone, replace(draft.funcs[gone], compute=None, store=None))
            repaired = repair(inlined, names)
            assert repair(repaired, names) == repaired


def test_what_is_computed_at_a_loop_that_is_gone_is_at_the_innermost_that_is_left() -> None:
    draft = repair(plain_draft(chain(), second=LoopLevel("output", "gone")), chain())
    assert draft.funcs["second"].compute == LoopLevel("output", "x")
    elsewhere = repair(plain_draft(chain(), first=LoopLevel("output", "y")), chain())
    assert elsewhere.funcs["first"].compute == ROOT, "second, which reads it, is at the root"


def test_it_is_not_put_into_a_vector() -> None:
    draft = plain_draft(chain(), second=LoopLevel("output", "gone"))
    output = with_split(draft.funcs["output"].stages[0], "x", 8, VECTOR)
    assert repair(with_stage(draft, "output", output), chain()).funcs["second"].compute == LoopLevel("output", "xo")


def test_a_producer_follows_its_consumers_in_the_same_repair() -> None:
    """`first` is at a loop of `second`, which is inlined: what is left around is the output's."""
    draft = plain_draft(chain(), second=None, first=LoopLevel("second", "y"))
    repaired = repair(draft, chain())
    assert repaired.funcs["first"].compute == ROOT and repaired.funcs["second"].is_inlined


def test_a_func_that_nobody_reads_any_more_is_not_computed() -> None:
    names = chain()
    draft = with_copy(plain_draft(names), "second_for_output", Clone("second", ("output",)))
    repaired = repair(draft, names)
    assert repaired.funcs["second"].compute is None and repaired.funcs["second_for_output"].compute == ROOT
    assert repaired.funcs["first"].compute == ROOT, "the clone reads it"


def test_the_output_is_at_the_root_and_what_is_extern_is_not_inlined() -> None:
    names = pipeline(
        func("first", (64, 32), is_extern=True), func("output", (64, 32), read("first", ("x", 1), ("y", 1)))
    )
    repaired = repair(plain_draft(names, first=None, output=None), names)
    assert repaired.funcs["output"].compute == repaired.funcs["first"].compute == ROOT


def test_a_store_level_that_is_no_longer_further_out_goes() -> None:
    draft = plain_draft(chain(), second=LoopLevel("output", "x"))
    stored = draft.with_func("second", replace(draft.funcs["second"], store=LoopLevel("output", "y")))
    assert repair(stored, chain()) == stored
    parallel = with_stage(stored, "output", StageDraft((), ("x", "y"), {"x": PARALLEL}))
    assert repair(parallel, chain()).funcs["second"].store is None
    moved = stored.with_func("second", replace(stored.funcs["second"], compute=ROOT))
    assert repair(moved, chain()).funcs["second"].store is None


def test_a_wrapper_goes_where_its_consumer_no_longer_calls_it() -> None:
    names = shared()
    draft = plain_draft(names)
    kept = with_copy(draft, "first_in_left", Wrapper("first", ("left",)))
    assert repair(kept, names) == kept
    assert repair(with_copy(draft, "first_in_output", Wrapper("first", ("output",))), names) == draft
    both = with_copy(draft, "first_in", Wrapper("first", ("left", "output")))
    assert repair(both, names) == draft, "Halide refuses one with a consumer that does not call it"


def test_wrappers_of_what_is_gone_go_with_it() -> None:
    names = shared()
    draft = plain_draft(names)
    inner = with_copy(draft, "first_for_output", Clone("first", ("output",)))
    outer = with_copy(inner, "first_in_copy", Wrapper("first", ("first_for_output",)))
    assert repair(outer, names) == draft


def test_only_loops_of_a_known_extent_stay_vectors_or_unrolled() -> None:
    draft = plain_draft(chain(), second=LoopLevel("output", "y"))
    marked = StageDraft((), ("x", "y"), {"x": VECTOR, "y": UNROLLED})
    repaired = repair(with_stage(draft, "second", marked), chain())
    assert repaired.funcs["second"].stages[0].kinds == {"y": UNROLLED}, "it has one row, as long as the caller wants"
    split = with_split(StageDraft((), ("x", "y"), {"y": PARALLEL}), "x", 8, VECTOR)
    assert repair(with_stage(draft, "output", split), chain()).funcs["output"].stages[0] == split


def test_a_kind_of_a_loop_that_is_gone_goes() -> None:
    draft = with_stage(plain_draft(chain()), "output", StageDraft((), ("x", "y"), {"xo": PARALLEL}))
    assert repair(draft, chain()).funcs["output"].stages[0].kinds == {}


def test_what_a_parent_has_in_equal_loops_is_right() -> None:
    names = chain()
    parent = with_stage(plain_draft(names), "second", StageDraft((), ("x", "y"), {"x": VECTOR}))
    child = parent.with_func("first", replace(parent.funcs["first"], compute=None))
    assert repaired_child(child, names, [DraftStructure(parent, names)]).draft == child
    assert repair(child, names).funcs["second"].stages[0].kinds == {}


def test_equal_loops_that_are_computed_elsewhere_prove_nothing() -> None:
    names = chain()
    start = plain_draft(names, second=LoopLevel("output", "xo"))
    start = with_stage(start, "output", with_split(StageDraft((), ("x", "y")), "x", 8))
    parent = with_stage(start, "second", StageDraft((), ("x", "y"), {"x": VECTOR}))
    assert repair(parent, names) == parent, "eight columns and two more"
    child = parent.with_func("second", replace(parent.funcs["second"], compute=LoopLevel("output", "y")))
    assert repaired_child(child, names, [DraftStructure(parent, names)]).draft.funcs["second"].stages[0].kinds == {}


def test_where_the_loops_around_were_reordered_a_parent_proves_nothing() -> None:
    names = chain()
    tiled = with_split(StageDraft((), ("x", "y")), "x", 8)
    order = replace(tiled, order=("xi", "y", "xo"))
    start = with_stage(plain_draft(names, second=LoopLevel("output", "y")), "output", order)
    parent = with_stage(start, "second", StageDraft((), ("x", "y"), {"x": VECTOR}))
    assert repair(parent, names) == parent, "each y is in a tile of eight columns"
    child = with_stage(parent, "output", tiled)
    assert child.funcs["second"] == parent.funcs["second"]
    assert repaired_child(child, names, [DraftStructure(parent, names)]).draft.funcs["second"].stages[0].kinds == {}


def test_partners_of_a_compute_with_stay_together_or_part() -> None:
    names = shared()
    together = StageDraft((), ("x", "y"), {}, (ComputeWith(Stage("left"), "y"),))
    draft = with_stage(plain_draft(names), "right", together)
    assert repair(draft, names) == draft
    parted = [
        draft.with_func("left", replace(draft.funcs["left"], compute=LoopLevel("output", "y"))),
        draft.with_func("left", replace(draft.funcs["left"], compute=None)),
        with_stage(draft, "left", with_split(StageDraft((), ("x", "y")), "y", 8)),
        with_stage(draft, "right", replace(with_split(StageDraft((), ("x", "y")), "y", 8), also=together.also)),
        with_stage(draft, "right", replace(together, also=(ComputeWith(Stage("left", 0), "y"),))),
        with_stage(draft, "right", replace(together, also=(ComputeWith(Stage("gone"), "y"),))),
    ]
    for changed in parted:
        assert repair(changed, names).funcs["right"].stages[0].also == ()


def test_partners_of_a_compute_with_have_equal_loops_from_the_shared_one_outwards() -> None:
    names = shared()
    with_right = replace(plain_draft(names).funcs["left"].stages[0], also=(ComputeWith(Stage("right"), "y"),))
    draft = with_stage(plain_draft(names), "left", with_right)
    assert repair(draft, names) == draft
    inside = with_stage(draft, "right", StageDraft((), ("x", "y"), {"x": VECTOR}))
    assert repair(inside, names).funcs["left"].stages[0].also, "what is inside may differ"
    alone = repair(with_stage(draft, "right", StageDraft((), ("x", "y"), {"y": PARALLEL})), names)
    assert not alone.funcs["left"].stages[0].also
    both = with_stage(alone, "left", replace(with_right, kinds={"y": PARALLEL}))
    assert repair(both, names).funcs["left"].stages[0].also


def test_a_func_does_not_share_loops_with_what_it_needs_through_others() -> None:
    """`left` is with `right`, and that with a third one that reads `left`."""
    third = func("third", (64, 32), read("left", ("x", 1), ("y", 1)))
    reads = [read(name, ("x", 1), ("y", 1)) for name in ("third", "right")]
    names = pipeline(
        *(shared().shapes[each] for each in ("first", "left", "right")), third, func("output", (64, 32), *reads)
    )
    draft = plain_draft(names)
    for name, partner in (("left", "right"), ("right", "third")):
        stage = replace(draft.funcs[name].stages[0], also=(ComputeWith(Stage(partner), "y"),))
        draft = with_stage(draft, name, stage)
    repaired = repair(draft, names)
    assert sum(bool(of.stages[0].also) for of in repaired.funcs.values()) == 1


def test_registers_are_of_a_known_size() -> None:
    draft = plain_draft(chain(), second=LoopLevel("output", "x"))
    stored = draft.with_func("second", replace(draft.funcs["second"], storage=(StoreIn(MemoryType.REGISTER),)))
    assert repair(stored, chain()) == stored
    moved = stored.with_func("second", replace(stored.funcs["second"], compute=LoopLevel("output", "y")))
    assert repair(moved, chain()).funcs["second"].storage == ()


@pytest.mark.parametrize("tail", [TailStrategy.AUTO, TailStrategy.SHIFT_INWARDS])
def test_no_step_of_an_outputs_split_is_longer_than_the_output(tail: TailStrategy) -> None:
    """The last step is moved inwards: it would write before the output."""
    draft = plain_draft(chain())
    rows = chain().shapes["output"].extents[1]
    assert rows is not None
    for name, factor, expected in (
        ("output", rows, tail),
        ("output", 2 * rows, TailStrategy.GUARD_WITH_IF),
        ("second", 8 * rows, tail),
    ):
        stage = with_split(draft.funcs[name].stages[0], "y", factor)
        stage = replace(stage, transforms=tuple(replace(made, tail=tail) for made in splits_of(stage)))
        (made,) = splits_of(repair(with_stage(draft, name, stage), chain()).funcs[name].stages[0])
        assert made.tail is expected


def test_a_prefetch_of_a_loop_that_is_gone_goes_and_atomic_is_said_once() -> None:
    fetch = Prefetch(Source("first"), "y", "y", 2)
    stage = StageDraft((), ("x", "y"), {}, (Atomic(), fetch, replace(fetch, at="yo"), Atomic(True)))
    repaired = repair(with_stage(plain_draft(chain()), "second", stage), chain())
    assert repaired.funcs["second"].stages[0].also == (fetch, Atomic())


def test_a_frozen_func_and_what_is_in_its_loops_stay() -> None:
    names = chain()
    condition = (Expression("radius", ()),)
    frozen = FuncDraft(ROOT, (), frozen=(StageSchedule("second", None, (ComputeAt(ROOT),), condition),))
    inside = plain_draft(names, first=LoopLevel("second", "any_as_is")).with_func("second", frozen)
    assert repair(inside, names) == inside
    stored = inside.with_func("first", replace(inside.funcs["first"], store=ROOT))
    assert repair(stored, names) == stored


def test_levels_are_around_all_uses_after_any_change() -> None:
    names = recorded("camera_pipeline")
    for draft in starting_drafts("camera_pipeline")[::3]:
        for other in starting_drafts("camera_pipeline")[::3]:
            mixed = Draft(
                {
                    name: (other if place % 2 else draft).funcs.get(name, kept)
                    for place, (name, kept) in enumerate(draft.funcs.items())
                }
            )
            structure = DraftStructure(repair(mixed, names), names)
            for name, each in structure.draft.funcs.items():
                assert structure.is_inlined(name) or each.compute in structure.around_all_uses(name)
                assert each.store is None or each.store in structure.stores(name)
