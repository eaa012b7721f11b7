"""What follows from a draft: who reads whom, which loops are around a Func, how much of it is computed there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.draft.work import work_of
from halide_autotune.autotune_loop.schedule.directives import Fuse
from halide_autotune.autotune_loop.schedule.model import Clone, Wrapper
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from tests.drafted_pipelines import chain, func, loop, pipeline, plain_draft, read, stage, with_split

OUTPUT = Site("output", 0)


def at(name: str, variable: str) -> LoopLevel:
    return LoopLevel(name, variable)


def shared() -> PipelineNames:
    """`first` is read by `left` and `right`, both of which the output reads."""
    return pipeline(
        func("first", (64, 32)),
        func("left", (64, 32), read("first", ("x", 1), ("y", 1))),
        func("right", (64, 32), read("first", ("x", 1), ("y", 1))),
        func("output", (64, 32), read("left", ("x", 1), ("y", 1)), read("right", ("x", 1), ("y", 1))),
    )


def of(names: PipelineNames, **computed: object) -> DraftStructure:
    return DraftStructure(plain_draft(names, **computed), names)


def with_output(structure: DraftStructure, output: StageDraft) -> DraftStructure:
    draft = structure.draft
    return DraftStructure(draft.with_func("output", draft.funcs["output"].with_stage(0, output)), structure.names)


def with_copy(draft: Draft, name: str, origin: Wrapper | Clone, compute: LoopLevel | None) -> Draft:
    return draft.with_func(name, FuncDraft(compute, (StageDraft((), ("x", "y")),), origin=origin))


# Who reads whom


def test_users_are_found_through_what_is_inlined() -> None:
    assert of(chain(), second=None).users["first"] == (OUTPUT,)
    assert of(chain()).users["first"] == (Site("second", 0),)
    both = of(shared(), left=None)
    assert set(both.users["first"]) == {OUTPUT, Site("right", 0)}
    assert of(chain()).users["output"] == ()


def test_a_func_with_updates_is_never_inlined() -> None:
    update = stage(loops=(loop("r", 8, "ordered"), loop("x", 64)))
    names = pipeline(func("total", (64,), updates=(update,)), func("output", (64,), read("total", ("x", 1))))
    structure = of(names, total=None)
    assert not structure.is_inlined("total") and structure.users["total"] == (OUTPUT,)
    # It is computed where its consumer's innermost loop is.
    assert structure.outside("total") == (at("output", "x"),)


def test_dependence_is_of_all_that_is_needed() -> None:
    structure = of(shared(), left=None)
    assert structure.depends("output", "first") and structure.depends("left", "first")
    assert not (structure.depends("left", "right") or structure.depends("first", "output"))


def test_a_wrapper_is_called_in_the_place_of_what_it_wraps_by_its_consumers_only() -> None:
    names = shared()
    draft = with_copy(plain_draft(names), "first_in_left", Wrapper("first", ("left",)), at("left", "y"))
    structure = DraftStructure(draft, names)
    assert structure.users["first_in_left"] == (Site("left", 0),)
    assert set(structure.users["first"]) == {Site("first_in_left", 0), Site("right", 0)}
    assert structure.depends("left", "first")
    wrapper = structure.shape("first_in_left")
    assert wrapper is not None and not wrapper.is_output and wrapper.stages[0].reads[0].is_of_one_point


def test_a_clone_reads_what_the_original_reads() -> None:
    names = chain()
    draft = with_copy(plain_draft(names), "second_for_output", Clone("second", ("output",)), at("output", "y"))
    structure = DraftStructure(draft, names)
    assert set(structure.users["first"]) == {Site("second", 0), Site("second_for_output", 0)}
    assert structure.users["second"] == () and structure.users["second_for_output"] == (OUTPUT,)


def test_a_wrapper_for_everybody_does_not_call_itself() -> None:
    names = shared()
    draft = with_copy(plain_draft(names), "first_in", Wrapper("first", ()), ROOT)
    structure = DraftStructure(draft, names)
    assert set(structure.users["first_in"]) == {Site("left", 0), Site("right", 0)}
    assert structure.users["first"] == (Site("first_in", 0),)


# Which loops are around


def test_the_loops_around_a_stage_are_its_own_and_its_consumers_from_where_it_is_computed() -> None:
    structure = of(chain(), second=at("output", "y"), first=at("second", "x"))
    assert structure.around(OUTPUT) == (at("output", "x"), at("output", "y"))
    assert structure.outside("second") == (at("output", "y"),)
    assert structure.outside("first") == (at("second", "x"), at("second", "y"), at("output", "y"))
    assert structure.outside("output") == ()


def test_only_loops_around_all_uses_may_have_a_func() -> None:
    apart = of(shared())
    assert apart.levels("first") == (ROOT,)
    together = of(shared(), left=at("output", "y"), right=at("output", "y"))
    assert together.levels("first") == (at("output", "y"), ROOT)
    inlined = of(shared(), left=None, right=None)
    assert inlined.levels("first") == (at("output", "x"), at("output", "y"), ROOT)
    assert inlined.levels("output") == (ROOT,)


def test_nothing_is_computed_within_a_vector() -> None:
    structure = of(chain())
    output = with_split(structure.draft.funcs["output"].stages[0], "x", 8, LoopKind.VECTORIZED)
    vector = with_output(structure, output)
    assert vector.around_all_uses("second")[0] == at("output", "xi")
    assert vector.levels("second") == (at("output", "xo"), at("output", "y"), ROOT)
    outer = with_output(structure, output.with_kind("xi", None).with_kind("y", LoopKind.VECTORIZED))
    assert outer.levels("second") == (ROOT,)


def test_a_func_is_stored_further_out_but_in_no_other_task() -> None:
    structure = of(chain(), second=at("output", "x"))
    assert structure.stores("second") == (at("output", "y"), ROOT)
    output = structure.draft.funcs["output"].stages[0]
    tasks = with_output(structure, output.with_kind("y", LoopKind.PARALLEL))
    assert tasks.stores("second") == (at("output", "y"),)
    inner = with_output(structure, output.with_kind("x", LoopKind.PARALLEL))
    assert inner.stores("second") == ()
    assert of(chain()).stores("second") == () and of(chain(), second=None).stores("second") == ()


def test_a_level_runs_as_its_loop_does() -> None:
    structure = with_output(of(chain()), StageDraft((), ("x", "y"), {"y": LoopKind.PARALLEL}))
    assert structure.kind(at("output", "y")) is LoopKind.PARALLEL
    assert structure.kind(at("output", "x")) is structure.kind(at("second", "y")) is structure.kind(ROOT) is None


def test_ordered_loops_come_from_the_inside() -> None:
    update = stage(loops=(loop("r", 8, "ordered"), loop("s", 4, "free"), loop("x", 64), loop("t", 2, "ordered")))
    names = pipeline(func("output", (64,), updates=(update,)))
    structure = of(names)
    assert structure.ordered_loops(Site("output", 1)) == ("r", "t") and structure.ordered_loops(OUTPUT) == ()


# How much


def test_loops_have_the_iterations_that_splits_and_fusions_leave() -> None:
    output = with_split(with_split(StageDraft((), ("x", "y")), "x", 24), "xo", 2)
    extents = with_output(of(chain()), output).loop_extents(OUTPUT)
    assert extents == {"x": 64, "xi": 24, "xo": 3, "xoi": 2, "xoo": 2, "y": 32}


def test_a_loop_has_as_many_iterations_as_are_needed_where_the_func_is_computed() -> None:
    structure = of(chain(), second=at("output", "y"), first=at("second", "y"))
    assert structure.loop_extents(Site("second", 0)) == {"x": 66, "y": 1}
    assert structure.region("second") == (66, 1) and structure.region("first") == (66, 3)
    assert of(chain()).region("first") == (66, 34)


@pytest.mark.parametrize(
    ("level", "expected"),
    [(None, (3, 3)), (at("output", "xi"), (3, 3)), (at("output", "xo"), (10, 3)), (at("output", "y"), (66, 3))],
)
def test_what_an_iteration_needs_reaches_through_what_is_inlined(
    level: LoopLevel | None, expected: tuple[int, ...]
) -> None:
    structure = with_output(of(chain(), second=None), with_split(StageDraft((), ("x", "y")), "x", 8))
    assert structure.region_at("first", level) == expected
    assert structure.region_at("first", ROOT) == (66, 34)


def test_where_data_decide_everything_is_needed() -> None:
    names = pipeline(func("table", (256,)), func("output", (64, 32), read("table", (None, 1))))
    assert of(names).region_at("table", at("output", "x")) == (256,)
    unknown = pipeline(func("table", (None,)), func("output", (64, 32), read("table", ("x", 1))))
    assert of(unknown).region("table") == (64,), "an estimate"


def test_half_a_step_needs_half_as_much() -> None:
    names = pipeline(
        func("small", (33, 32)),
        func("large", (128, 32), is_output=False),
        func("output", (64, 32), read("small", ("x", 2, 96), ("y", 1)), read("large", ("x", 2, 384), ("y", 1))),
    )
    structure = of(names)
    assert structure.region_at("small", at("output", "y")) == (33, 1)
    assert structure.region_at("large", at("output", "y")) == (128, 1)
    assert structure.region_at("large", at("output", "x")) == (2, 1)


def test_what_is_between_the_iterations_of_a_loop_is_needed_too() -> None:
    """Of a loop outside of what was split from it an iteration has every eighth row; Halide's regions are boxes."""
    rows = with_split(StageDraft((), ("x", "y")), "y", 8)
    usual = with_output(of(chain()), rows)
    assert usual.region_at("second", at("output", "yo")) == (66, 8)
    assert usual.region_at("second", at("output", "yi")) == (66, 1)
    gaps = with_output(of(chain(), second=at("output", "yi")), replace(rows, order=("x", "yo", "yi")))
    assert gaps.region_at("second", at("output", "yi")) == (66, 1 + 3 * 8)
    assert gaps.region("first") == (66, 34)
    # Each of the eight iterations computes almost all of it.
    assert work_of(gaps)["second"] == 8 * 25 / 32 * work_of(of(chain()))["second"]


def test_a_fused_loop_goes_as_far_in_each_of_the_loops_that_it_was_made_of() -> None:
    names = pipeline(func("first", (64, 3)), func("output", (64, 3), read("first", ("x", 1), ("y", 1))))
    strips = with_split(with_split(StageDraft((), ("x", "y")), "x", 8), "xo", 4)
    fused = (*strips.transforms, Fuse("y", "xoi", "tiles"))
    structure = with_output(of(names), StageDraft(fused, ("xi", "tiles", "xoo")))
    assert structure.region_at("first", at("output", "tiles")) == (8, 1)
    assert structure.region_at("first", at("output", "xoo")) == (64, 3), "an estimate: 32 columns of three rows"


def test_work_counts_what_is_computed_again() -> None:
    def work(**computed: object) -> float:
        return work_of(of(chain(), **computed))["first"]

    once = work()
    assert once == 66 * 34 * 6, "operations and the store"
    # Each of 32 rows needs three of the first.
    assert work(first=at("second", "y")) == 66 * 3 * 32 * 6
    assert work(second=None, first=at("output", "y")) == 66 * 3 * 32 * 6


def test_a_sliding_window_computes_each_point_once() -> None:
    structure = of(chain(), first=at("second", "y"))
    stored = replace(structure.draft.funcs["first"], store=ROOT)
    sliding = DraftStructure(structure.draft.with_func("first", stored), structure.names)
    again, once = work_of(structure)["first"], work_of(sliding)["first"]
    assert once < again / 2.5
    assert once == pytest.approx(work_of(of(chain()))["first"], rel=0.15)


def test_inlined_work_is_its_consumers() -> None:
    assert work_of(of(chain(), first=None)).keys() == {"second", "output"}
    inlined, alone = work_of(of(chain(), first=None))["second"], work_of(of(chain()))["second"]
    # Three calls, each of which is five operations and one more.
    assert inlined == alone / 6 * (6 + 3 * 6)
