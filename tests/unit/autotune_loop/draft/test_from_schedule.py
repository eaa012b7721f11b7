"""A schedule as calls becomes a draft, whatever calls made its loops, and a draft becomes one schedule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.draft.work import work_of
from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import (
    Atomic,
    ComputeAt,
    ComputeWith,
    Directive,
    Fuse,
    GpuBlocks,
    Parallel,
    PartitionLoop,
    Prefetch,
    Rename,
    Reorder,
    ReorderStorage,
    RFactor,
    Serial,
    Split,
    StoreAt,
    StoreIn,
    Tile,
    Unroll,
    Unscheduled,
    Vectorize,
)
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    ByName,
    Clone,
    DimensionList,
    Intermediate,
    Origin,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.values import (
    ROOT,
    Expression,
    LoopAlignStrategy,
    LoopLevel,
    MemoryType,
    Partition,
    Source,
    Stage,
    TailStrategy,
)
from halide_autotune.targets.errors import GeneratorError
from tests.drafted_pipelines import (
    EXAMPLES,
    chain,
    func,
    header_drafts,
    loop,
    pipeline,
    plain_draft,
    read,
    recorded,
    stage,
    staged,
    starting_drafts,
)

NAMES = chain()
# A pipeline whose first Func has an update of an ordered reduction.
SUMS = pipeline(
    func("sums", (64, 32), updates=(stage(loops=(loop("r", 8, "ordered"), loop("x", 64), loop("y", 32))),)),
    func("output", (64, 32), read("sums", ("x", 1), ("y", 1))),
)


def schedule(
    stages: Iterable[StageSchedule], variables: str, funcs: dict[str, Origin] | None = None, rvars: str = ""
) -> Schedule:
    """Funcs of `chain` by their index, unless others are given; variables by their own names."""
    origins = funcs or {"first": ByIndex(0), "second": ByIndex(1), "output": ByIndex(2)}
    made = tuple(Variable(each, False, each) for each in variables.split())
    made += tuple(Variable(each, True, each) for each in rvars.split())
    return Schedule("f", tuple(ScheduledFunc(name, origin) for name, origin in origins.items()), made, tuple(stages))


def stage_of(*directives: Directive, variables: str = "x y xo xi yo yi t fast") -> StageDraft:
    """What the output's stage becomes."""
    return draft_of(schedule([StageSchedule("output", None, directives)], variables), NAMES).funcs["output"].stages[0]


def test_what_no_schedule_names_is_inlined_but_the_output_is_not() -> None:
    draft = draft_of(schedule([], ""), NAMES)
    assert [name for name, func in draft.funcs.items() if func.is_inlined] == ["first", "second"]
    assert draft.funcs["output"] == FuncDraft(ROOT, (StageDraft((), ("x", "y")),))


def test_a_name_that_is_used_again_gets_one_of_its_own() -> None:
    made = stage_of(Split("x", "x", "xi", 8), Split("x", "x", "t", 4), Reorder(("xi", "y", "t", "x")), Parallel("x"))
    assert made.transforms == (Split("x", "xo", "xi", 8), Split("xo", "xoo", "xoi", 4))
    assert made.order == ("xi", "y", "xoi", "xoo") and made.kinds == {"xoo": LoopKind.PARALLEL}


def test_no_loop_is_called_by_a_word_of_cpp_or_python() -> None:
    output = replace(func("output", (64,)), args=("d",), stages=(stage(loops=(loop("d", 64),)),))
    names = pipeline(output)
    split = StageSchedule("output", None, (Split("d", "d_outer", "d_inner", 8),))
    made = draft_of(schedule([split], "d d_outer d_inner", {"output": ByIndex(0)}), names).funcs["output"].stages[0]
    assert made.transforms == (Split("d", "do_", "di", 8),)


def test_a_tile_is_two_splits_and_an_order() -> None:
    made = stage_of(Tile(("x", "y"), ("xo", "yo"), ("xi", "yi"), (8, 4), TailStrategy.ROUND_UP))
    assert made.transforms == tuple(
        Split(old, f"{old}o", f"{old}i", factor, TailStrategy.ROUND_UP) for old, factor in (("x", 8), ("y", 4))
    )
    assert made.order == ("xi", "yi", "xo", "yo")


def test_a_reorder_of_some_loops_leaves_the_others_where_they_are() -> None:
    made = stage_of(Split("x", "xo", "xi", 8), Split("y", "yo", "yi", 4), Reorder(("yo", "xi")))
    assert made.order == ("yo", "xo", "yi", "xi")


def test_a_fusion_takes_the_inner_loops_place() -> None:
    made = stage_of(Split("x", "xo", "xi", 8), Fuse("xo", "y", "t"), Parallel("t"))
    assert made.transforms[1:] == (Fuse("xo", "y", "xo_y"),)
    assert made.order == ("xi", "xo_y") and made.kinds == {"xo_y": LoopKind.PARALLEL}


def test_parallel_tasks_of_a_size_are_a_split() -> None:
    made = stage_of(Parallel("y", 4, TailStrategy.GUARD_WITH_IF), Vectorize("x"))
    assert made.transforms == (Split("y", "yo", "yi", 4, TailStrategy.GUARD_WITH_IF),)
    assert made.order == ("x", "yi", "yo")
    assert made.kinds == {"x": LoopKind.VECTORIZED, "yo": LoopKind.PARALLEL}


def test_a_loop_is_what_was_said_of_it_last() -> None:
    made = stage_of(Rename("x", "fast"), Unroll("fast"), Vectorize("fast"), Parallel("y"), Serial("y"), Unscheduled())
    assert made == StageDraft((), ("x", "y"), {"x": LoopKind.VECTORIZED})


def test_other_directives_name_the_drafts_loops() -> None:
    made = stage_of(
        Split("y", "t", "fast", 4),
        Atomic(),
        PartitionLoop("t", Partition.NEVER),
        Prefetch(Source("second"), "fast", "t", 2),
    )
    fetch = Prefetch(Source("second"), "yi", "yo", 2)
    assert made.also == (Atomic(), PartitionLoop("yo", Partition.NEVER), fetch)


def test_levels_and_partners_name_the_drafts_loops_of_the_other_func() -> None:
    output = StageSchedule("output", None, (Split("y", "t", "fast", 4),))
    aligned = (("y", LoopAlignStrategy.ALIGN_END),)
    second = StageSchedule("second", None, (ComputeAt(LoopLevel("output", "fast")), StoreAt(LoopLevel("output", "t"))))
    first = StageSchedule("first", None, (ComputeAt(ROOT), ComputeWith(Stage("second"), "y", aligned)))
    draft = draft_of(schedule([output, second, first], "x y t fast"), NAMES)
    assert draft.funcs["second"].compute == LoopLevel("output", "yi")
    assert draft.funcs["second"].store == LoopLevel("output", "yo")
    assert draft.funcs["first"].stages[0].also == (ComputeWith(Stage("second"), "y", aligned),)


def test_an_updates_loops_are_its_own() -> None:
    stages = [
        StageSchedule("sums", None, (ComputeAt(ROOT), Vectorize("x"), StoreIn(MemoryType.HEAP))),
        StageSchedule("sums", 0, (Reorder(("x", "r", "y")), Split("r", "ro", "ri", 4), Unroll("ri"))),
    ]
    made = schedule(stages, "x y", {"sums": ByIndex(0)}, rvars="r ro ri")
    sums = draft_of(made, SUMS).funcs["sums"]
    assert sums.compute == ROOT and sums.storage == (StoreIn(MemoryType.HEAP),)
    assert sums.stages[0] == StageDraft((), ("x", "y"), {"x": LoopKind.VECTORIZED})
    assert sums.stages[1].order == ("x", "ri", "ro", "y") and sums.stages[1].kinds == {"ri": LoopKind.UNROLLED}
    back = schedule_of(draft_of(made, SUMS), SUMS, "f")
    assert {each.identifier for each in back.variables if each.is_reduction} == {"r", "ro", "ri"}


def test_variables_by_their_place_are_those_of_the_pipeline() -> None:
    places = (
        Variable("a", False, Accessor("g", None, DimensionList.ARGS, 1)),
        Variable("b", False, Accessor("g", None, DimensionList.DIMS, 0)),
    )
    stages = (StageSchedule("g", None, (ComputeAt(ROOT), ReorderStorage(("a", "b")), Vectorize("b"))),)
    made = Schedule("f", (ScheduledFunc("g", ByName("second")),), places, stages)
    second = draft_of(made, NAMES).funcs["second"]
    assert second.storage == (ReorderStorage(("y", "x")),)
    assert second.stages[0].kinds == {"x": LoopKind.VECTORIZED}


def test_wrappers_and_clones_have_the_loops_of_what_they_stand_for() -> None:
    funcs: dict[str, Origin] = {
        "f0": ByIndex(0),
        "f2": ByIndex(2),
        "w": Wrapper("f0", ("f1",)),
        "f1": ByIndex(1),
        "c": Clone("f1", ("f2",)),
    }
    stages = [
        StageSchedule("w", None, (ComputeAt(LoopLevel("f1", "y")), Vectorize("x"))),
        StageSchedule("c", None, (ComputeAt(LoopLevel("f2", "y")),)),
    ]
    draft = draft_of(schedule(stages, "x y", funcs), NAMES)
    assert draft.funcs["w"].origin == Wrapper("first", ("second",))
    assert draft.funcs["w"].compute == LoopLevel("second", "y")
    assert draft.funcs["c"] == FuncDraft(
        LoopLevel("output", "y"), (StageDraft((), ("x", "y")),), origin=Clone("second", ("output",))
    )
    assert draft.replacements == {
        "first": (("w", frozenset({"second"})),),
        "second": (("c", frozenset({"output"})),),
    }


def test_what_a_draft_cannot_hold_is_kept_as_it_is() -> None:
    stages = [
        StageSchedule("second", None, (ComputeAt(LoopLevel("output", "y")), GpuBlocks(("x", "y")))),
        StageSchedule("first", None, (ComputeAt(LoopLevel("second", "y")),)),
    ]
    draft = draft_of(schedule(stages, "x y"), NAMES)
    second = draft.funcs["second"]
    assert second.frozen and second.stages == () and second.compute == LoopLevel("output", "y")
    assert not second.is_inlined
    # Its loops are told from the draft's, and what is in them stays in them.
    assert draft.funcs["first"].compute == LoopLevel("second", "y_as_is")
    again = schedule_of(draft, NAMES, "f")
    check_schedule(again)
    (kept,) = (each for each in again.stages if each.func == "second")
    assert kept.directives == (ComputeAt(LoopLevel("output", "y")), GpuBlocks(("x_as_is", "y_as_is")))
    assert {each.source for each in again.variables if each.identifier.endswith("_as_is")} == {"x", "y"}


def test_a_copy_of_an_extern_func_is_kept_as_it_is() -> None:
    """The Func that it stands for has no loops."""
    funcs: dict[str, Origin] = {"foreign": ByIndex(1), "output": ByIndex(2), "w": Wrapper("foreign", ("output",))}
    stages = [StageSchedule("w", None, (ComputeAt(LoopLevel("output", "y")), Vectorize("x")))]
    draft = draft_of(schedule(stages, "x y", funcs), staged())
    assert draft.funcs["w"].frozen and draft.funcs["w"].origin == Wrapper("foreign", ("output",))
    assert work_of(DraftStructure(draft, staged()))["output"] > 0
    again = schedule_of(draft, staged(), "f")
    check_schedule(again)
    assert draft_of(again, staged()) == draft


def test_what_an_rfactor_makes_is_kept_with_it() -> None:
    stages = [
        StageSchedule("sums", 0, (Split("r", "ro", "ri", 4), RFactor((("ri", "u"),), "partial"))),
        StageSchedule("partial", None, (ComputeAt(ROOT), Vectorize("u"))),
    ]
    funcs: dict[str, Origin] = {"sums": ByIndex(0), "partial": Intermediate()}
    draft = draft_of(schedule(stages, "u", funcs, rvars="r ro ri"), SUMS)
    assert draft.funcs["partial"].origin == Intermediate() and draft.funcs["partial"].frozen
    assert draft.funcs["sums"].frozen and not draft.funcs["output"].frozen
    again = schedule_of(draft, SUMS, "f")
    check_schedule(again)
    assert ScheduledFunc("partial", Intermediate()) in again.funcs
    assert draft_of(again, SUMS) == draft, "what is kept has one name for good"
    factored = RFactor((("ri_as_is", "u_as_is"),), "partial")
    assert factored in {each for made in again.stages for each in made.directives}


def test_a_specialization_keeps_its_condition() -> None:
    condition = (Expression("==", (Expression("+", (1, 1)), 2)),)
    stages = [
        StageSchedule("second", None, (ComputeAt(ROOT),)),
        StageSchedule("second", None, (Vectorize("x"),), condition),
    ]
    draft = draft_of(schedule(stages, "x y"), NAMES)
    assert [each.conditions for each in draft.funcs["second"].frozen] == [(), condition]
    assert [each.conditions for each in schedule_of(draft, NAMES, "f").stages if each.func == "second"] == [
        (),
        condition,
    ]


@pytest.mark.parametrize("origin", [ByIndex(3), ByName("none")])
def test_a_func_that_the_pipeline_has_not_is_refused(origin: Origin) -> None:
    with pytest.raises(GeneratorError, match="The pipeline has no Func"):
        draft_of(schedule([], "", {"g": origin}), NAMES)


def test_equal_drafts_give_equal_schedules_whatever_the_order_of_their_parts() -> None:
    one = plain_draft(NAMES, first=LoopLevel("output", "y"))
    kinds = {"x": LoopKind.VECTORIZED, "y": LoopKind.PARALLEL}
    some = one.with_func("output", FuncDraft(ROOT, (StageDraft((), ("x", "y"), kinds),)))
    turned = StageDraft((), ("x", "y"), dict(reversed(kinds.items())))
    other = one.with_func("output", FuncDraft(ROOT, (turned,)))
    assert some == other
    assert print_json(schedule_of(some, NAMES, "f")) == print_json(schedule_of(other, NAMES, "f"))


def test_what_is_inlined_is_not_in_the_schedule() -> None:
    made = schedule_of(plain_draft(NAMES, first=None), NAMES, "f")
    assert {each.func for each in made.stages} == {each.identifier for each in made.funcs} == {"second", "output"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_schedules_of_examples_come_back_from_drafts(name: str) -> None:
    drafts = header_drafts(name)
    assert drafts or name == "edge_detector"
    for draft in (*drafts, *starting_drafts(name)):
        made = schedule_of(draft, recorded(name), "f")
        check_schedule(made)
        assert parse_json(print_json(made)) == parse_schedule(print_header(made, "f")) == made
        again = draft_of(made, recorded(name))
        assert draft_of(schedule_of(again, recorded(name), "f"), recorded(name)) == again
    for draft in drafts:
        assert isinstance(draft, Draft) and not any(func.frozen for func in draft.funcs.values())
        assert draft_of(schedule_of(draft, recorded(name), "f"), recorded(name)) == draft
