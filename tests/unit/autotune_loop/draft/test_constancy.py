"""Which extents are known when a pipeline is compiled: only such loops are vectors or unrolled, and on the stack."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.draft.edit import fuse
from halide_autotune.autotune_loop.draft.model import StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.directives import Bound, BoundExtent, Split
from halide_autotune.autotune_loop.schedule.values import ROOT, Expression, LoopLevel
from tests.drafted_pipelines import chain, func, loop, pipeline, plain_draft, read, stage, with_split

OUTPUT = Site("output", 0)


def structure(names: PipelineNames, output: StageDraft | None = None, **computed: object) -> DraftStructure:
    draft = plain_draft(names, **computed)
    if output is not None:
        draft = draft.with_func("output", draft.funcs["output"].with_stage(0, output))
    return DraftStructure(draft, names)


def test_what_a_number_splits_off_is_constant_and_the_rest_is_not() -> None:
    split = structure(chain(), with_split(StageDraft((), ("x", "y")), "x", 8))
    assert split.is_constant(OUTPUT, "xi")
    assert not any(split.is_constant(OUTPUT, each) for each in ("x", "xo", "y"))
    by_parameter = StageDraft((Split("x", "xo", "xi", Expression("radius", ())),), ("xi", "xo", "y"))
    assert not structure(chain(), by_parameter).is_constant(OUTPUT, "xi")


def test_the_outer_loop_of_a_constant_one_is_constant() -> None:
    twice = with_split(with_split(StageDraft((), ("x", "y")), "x", 8), "xi", 2)
    assert structure(chain(), twice).is_constant(OUTPUT, "xio")
    again = with_split(with_split(StageDraft((), ("x", "y")), "x", 8), "xo", 2)
    assert not structure(chain(), again).is_constant(OUTPUT, "xoo")


def test_a_fusion_is_constant_where_both_are() -> None:
    both = with_split(with_split(StageDraft((), ("x", "y")), "x", 8), "y", 4)
    for inner, outer, expected in (("xi", "yi", True), ("xi", "yo", False), ("xo", "yi", False)):
        fused, name = fuse(both, inner, outer)
        assert structure(chain(), fused).is_constant(OUTPUT, name) is expected


def test_a_reduction_is_constant_unless_callers_give_its_size() -> None:
    loops = (
        loop("r", 8, "ordered"),
        loop("s", 8, "ordered", is_constant=False),
        loop("t", None, "free", is_constant=False),
    )
    names = pipeline(func("output", (64,), updates=(stage(loops=(*loops, loop("x", 64))),)))
    found = structure(names)
    assert [each for each in ("r", "s", "t", "x") if found.is_constant(Site("output", 1), each)] == ["r"]


def test_what_the_output_promises_is_constant_for_its_producers_too() -> None:
    names = pipeline(
        func("first", (64, 32), read("input", ("x", 1), ("y", 1), is_input=True)),
        func("output", (64, 32), read("first", ("x", 3), ("y", 1)), bounded=("x",)),
    )
    found = structure(names, first=LoopLevel("output", "y"))
    assert found.is_constant(OUTPUT, "x") and not found.is_constant(OUTPUT, "y")
    first = Site("first", 0)
    assert found.is_constant(first, "x") and found.is_constant(first, "y"), "one row of a known length"
    assert found.has_constant_region("first")
    assert structure(names).is_constant(first, "x") and not structure(names).is_constant(first, "y")


@pytest.mark.parametrize("promise", [BoundExtent("x", 64), Bound("x", 0, 64), BoundExtent("x", Expression("n", ()))])
def test_a_directive_may_promise_it_with_a_number(promise: Bound | BoundExtent) -> None:
    draft = plain_draft(chain())
    bounded = draft.with_func("second", replace(draft.funcs["second"], storage=(promise,)))
    found = DraftStructure(bounded, chain())
    assert found.is_constant(Site("second", 0), "x") is isinstance(promise.extent, int)
    assert not found.is_constant(Site("second", 0), "y")


@pytest.mark.parametrize(
    ("level", "in_x", "in_y"),
    [("xi", True, True), ("xo", True, True), ("y", False, True), ("root", False, False)],
)
def test_what_is_computed_in_a_loop_is_as_constant_as_what_that_covers(level: str, in_x: bool, in_y: bool) -> None:
    output = with_split(StageDraft((), ("x", "y")), "x", 8)
    found = structure(chain(), output, second=ROOT if level == "root" else LoopLevel("output", level))
    second = Site("second", 0)
    assert (found.is_constant(second, "x"), found.is_constant(second, "y")) == (in_x, in_y)
    assert found.has_constant_region("second") is (in_x and in_y)


def test_what_is_computed_in_a_producers_consumer_follows_through_it() -> None:
    output = with_split(StageDraft((), ("x", "y")), "x", 8)
    inlined = structure(chain(), output, second=None, first=LoopLevel("output", "xo"))
    assert inlined.has_constant_region("first")
    rows = structure(chain(), output, second=None, first=LoopLevel("output", "y"))
    assert not rows.is_constant(Site("first", 0), "x") and rows.is_constant(Site("first", 0), "y")
    beside = structure(chain(), output, second=LoopLevel("output", "xo"), first=LoopLevel("output", "xo"))
    assert beside.has_constant_region("first")


def test_a_loop_further_out_needs_all_iterations_of_what_is_inside_it() -> None:
    """`second` runs over a constant number of columns in each `xo`, but each `y` has all of those."""
    output = with_split(StageDraft((), ("x", "y")), "x", 8)
    found = structure(chain(), output, second=LoopLevel("output", "xo"), first=LoopLevel("output", "y"))
    assert found.is_constant(Site("second", 0), "x") and not found.is_constant(Site("first", 0), "x")


def test_one_of_two_consumers_is_enough_to_make_it_unknown() -> None:
    names = pipeline(
        func("first", (64, 32)),
        func("left", (64, 32), read("first", ("x", 1), ("y", 1))),
        func("output", (64, 32), read("first", ("x", 1), ("y", 1)), read("left", (None, 1), ("y", 1))),
    )
    output = with_split(StageDraft((), ("x", "y")), "x", 8)
    at_tile = structure(names, output, first=LoopLevel("output", "xo"), left=None)
    assert not at_tile.is_constant(Site("first", 0), "x"), "data decide what `left` reads of it"
    assert at_tile.is_constant(Site("first", 0), "y")


@pytest.mark.parametrize(
    ("level", "slope", "width", "expected"),
    [("xo", 96, 1, False), ("xi", 96, 1, True), ("xo", 96, 2, False), ("xo", 384, 2, True), ("xo", 192, 3, True)],
)
def test_an_extent_that_rounding_decides_is_not_constant(level: str, slope: int, width: int, expected: bool) -> None:
    """Eight points from an even one on need four at half the pace; from an odd one on, five."""
    names = pipeline(func("first", (128, 32)), func("output", (64, 32), read("first", ("x", width, slope), ("y", 1))))
    output = with_split(StageDraft((), ("x", "y")), "x", 8)
    found = structure(names, output, first=LoopLevel("output", level))
    assert found.is_constant(Site("first", 0), "x") is expected


def test_what_an_update_writes_at_an_index_of_its_own_is_not_constant() -> None:
    """As a histogram's bins: those that are written belong to what is computed, too."""

    def bins(*loops: str) -> PipelineNames:
        update = stage(loops=(loop("r", 8, "ordered"), *(loop(each, 64) for each in loops)))
        reads = read("bins", ("x", 1), ("y", 1))
        return pipeline(func("bins", (64, 32), updates=(update,)), func("output", (64, 32), reads))

    output = with_split(StageDraft((), ("x", "y")), "x", 8)
    at_tile = LoopLevel("output", "xo")
    everywhere, scattered = (structure(names, output, bins=at_tile) for names in (bins("x", "y"), bins("y")))
    assert everywhere.is_constant(Site("bins", 0), "x") and everywhere.has_constant_region("bins")
    assert not scattered.is_constant(Site("bins", 0), "x") and not scattered.has_constant_region("bins")
    assert scattered.is_constant(Site("bins", 0), "y")


@pytest.mark.parametrize(("slope", "expected"), [(192, True), (384, False)])
def test_what_two_need_together_is_constant_if_they_move_alike(slope: int, expected: bool) -> None:
    names = pipeline(
        func("first", (128, 32)),
        func("left", (64, 32), read("first", ("x", 2, slope), ("y", 1))),
        func("output", (64, 32), read("first", ("x", 1), ("y", 1)), read("left", ("x", 1), ("y", 1))),
    )
    output = with_split(StageDraft((), ("x", "y")), "x", 8)
    for left in (None, LoopLevel("output", "xo")):
        found = structure(names, output, first=LoopLevel("output", "xo"), left=left)
        assert found.is_constant(Site("first", 0), "x") is expected


@pytest.mark.parametrize("bounded", [(), ("x",)])
def test_one_that_needs_all_channels_and_one_that_needs_its_own_have_no_constant_extent(bounded: tuple[str]) -> None:
    """Unless all are one's own: then there is one iteration around them."""
    every = stage(read("first", ("r", 1), ("y", 1)), loops=(loop("r", 8, "ordered"), loop("x", 8), loop("y", 32)))
    names = pipeline(
        func("first", (8, 32)),
        func("sums", (8, 32), updates=(every,)),
        func("output", (8, 32), read("first", ("x", 1), ("y", 1)), read("sums", ("x", 1), ("y", 1)), bounded=bounded),
    )
    output = with_split(StageDraft((), ("x", "y")), "x", 8)
    level = LoopLevel("output", "xo")
    found = structure(names, output, first=level, sums=level)
    assert found.is_constant(Site("sums", 1), "x")
    assert found.is_constant(Site("first", 0), "x") is bool(bounded)
