"""The move that loads whole vectors of a table where data say which place of it is read."""

from __future__ import annotations

from random import Random

from halide_autotune.autotune_loop.draft.edit import loops_of_kind, reorder
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import ReorderStorage
from halide_autotune.autotune_loop.schedule.values import ROOT
from tests.drafted_pipelines import for_target, lookups, plain_draft, with_split

ALONE = {move.name: 0.0 for move in MOVES} | {"vector lookup": 1.0}
UNROLLED, VECTOR = LoopKind.UNROLLED, LoopKind.VECTORIZED
VALUES_FIRST = ReorderStorage(("z", "x", "y"))


def gathered(names: PipelineNames, **computed: object) -> Draft:
    """The output in vectors of eight points, all channels of each, into which all that looks up is inlined."""
    draft = plain_draft(names, **{"looked_up": None, "place": None, **computed})
    output = reorder(with_split(draft.funcs["output"].stages[0], "x", 8, VECTOR), ("xi", "z", "xo", "y"))
    return draft.with_func("output", draft.funcs["output"].with_stage(0, output))


def test_what_was_gathered_is_loaded_for_a_block_of_readers() -> None:
    names = lookups()
    draft, source = gathered(names), Random(3)
    seen = set()
    for _ in range(40):
        child = Mutation(names).child(draft, source, ALONE, 1)
        assert child is not None and child.moves == ("vector lookup",)
        check_schedule(schedule_of(child.draft, names, "f"))
        funcs = child.draft.funcs
        looked_up, place = funcs["looked_up"], funcs["place"]
        assert funcs["table"].storage == (VALUES_FIRST,)
        vector, *others = looked_up.stages[0].order
        assert looked_up.stages[0].kind(vector) is VECTOR and looked_up.stages[0].root_of(vector) == ("z",)
        extents = DraftStructure(child.draft, names).loop_extents(Site("looked_up", 0))
        assert extents[vector] in (12, 4), "nothing is left over"
        unrolled = loops_of_kind(looked_up.stages[0], UNROLLED)
        assert others[: len(unrolled)] == [*unrolled]
        assert looked_up.compute is not None and looked_up.compute.func == "output"
        assert place.is_inlined or place.compute == looked_up.compute
        seen.add((extents[vector], looked_up.storage, place.is_inlined, looked_up.compute.variable))
    assert {lanes for lanes, *_ in seen} == {12, 4}
    assert {storage for _, storage, *_ in seen} == {(), (VALUES_FIRST,)}
    assert {is_inlined for _, _, is_inlined, _ in seen} == {True, False}
    assert len({level for *_, level in seen}) == 2, "the two innermost loops that need all values of a place"


def test_what_has_loops_of_its_own_stays_where_it_is() -> None:
    names = lookups()
    draft = gathered(names, looked_up=ROOT)
    stage = with_split(draft.funcs["looked_up"].stages[0], "x", 8, VECTOR).with_kind("y", LoopKind.PARALLEL)
    draft = draft.with_func("looked_up", draft.funcs["looked_up"].with_stage(0, stage))
    child = Mutation(names).child(draft, Random(3), ALONE, 1)
    assert child is not None
    changed = child.draft.funcs["looked_up"]
    assert changed.compute == ROOT and changed.stages[0].kind("y") is LoopKind.PARALLEL
    assert changed.stages[0].root_of(changed.stages[0].order[0]) == ("z",)
    assert changed.stages[0].kind("xi") is UNROLLED, "what was a vector"
    assert Mutation(names).child(child.draft, Random(3), ALONE, 1) is None, "it has its vectors"


def test_vectors_are_as_long_as_the_target_needs() -> None:
    names = for_target(lookups(), least_lanes=8)
    for seed in range(10):
        child = Mutation(names).child(gathered(names), Random(seed), ALONE, 1)
        assert child is not None
        extents = DraftStructure(child.draft, names).loop_extents(Site("looked_up", 0))
        assert extents[child.draft.funcs["looked_up"].stages[0].order[0]] == 12, "and not four"


def test_without_a_stored_table_nothing_gains() -> None:
    assert Mutation(lookups()).child(gathered(lookups(), table=None, source=None), Random(3), ALONE, 1) is None
