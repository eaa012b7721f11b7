"""Parts of one schedule in another come with all that belongs to them."""

from __future__ import annotations

from random import Random

import pytest

from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, StageDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.moves.crossover import crossover
from halide_autotune.autotune_loop.moves.mutation import CROSSOVER, Mutation
from halide_autotune.autotune_loop.schedule.directives import ComputeAt, RFactor, Split
from halide_autotune.autotune_loop.schedule.model import Intermediate, StageSchedule, Wrapper
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from tests.drafted_pipelines import chain, plain_draft, recorded, starting_drafts


def with_families() -> tuple[Draft, Draft]:
    """`first` in the output's rows beside `second`, and all at the root."""
    rows = LoopLevel("output", "y")
    return plain_draft(chain()), plain_draft(chain(), second=rows, first=LoopLevel("second", "y"))


def test_crossover_brings_a_func_with_what_is_computed_in_its_loops() -> None:
    into, other = with_families()
    made = [crossover(DraftStructure(into, chain()), other, Random(seed)) for seed in range(60)]
    seen = {
        tuple(name for name in ("first", "second") if draft.funcs[name] == other.funcs[name])
        for draft in made
        if draft is not None
    }
    assert ("first", "second") in seen, "the family"
    assert {("first",), ("second",)} <= seen, "one Func alone"
    assert all(draft is None or draft.funcs["output"] == into.funcs["output"] for draft in made)


def test_equal_parents_have_no_children() -> None:
    into, _ = with_families()
    assert crossover(DraftStructure(into, chain()), into, Random(1)) is None
    assert Mutation(chain()).crossed(into, into, Random(1)) is None


def test_copies_come_along_with_what_they_stand_for() -> None:
    into, other = with_families()
    copy = FuncDraft(LoopLevel("output", "y"), (StageDraft((), ("x", "y")),), origin=Wrapper("second", ("output",)))
    other = other.with_func("second_in_output", copy)
    for seed in range(40):
        made = crossover(DraftStructure(into, chain()), other, Random(seed))
        if made is not None and made.funcs["second"] == other.funcs["second"]:
            assert made.funcs["second_in_output"] == copy
        back = crossover(DraftStructure(other, chain()), into, Random(seed))
        assert back is None or back.funcs.get("second_in_output") in (copy, None)


def test_what_is_taken_over_has_the_others_order() -> None:
    """The order of a set differs between processes."""
    into, other = with_families()
    copies = {}
    for number in range(8):
        of, reader = ("first", "second") if number % 2 else ("second", "output")
        level = LoopLevel(reader, "y")
        copies[f"copy_{7 - number}"] = FuncDraft(level, (StageDraft((), ("x", "y")),), origin=Wrapper(of, (reader,)))
    other = Draft({**other.funcs, **copies})
    for seed in range(40):
        made = crossover(DraftStructure(into, chain()), other, Random(seed))
        if made is None:
            continue
        taken = [name for name in made.funcs if name in copies]
        assert taken == [name for name in copies if name in taken]


@pytest.mark.parametrize("name", ["camera_pipeline", "bilateral_grid"])
def test_what_is_crossed_is_of_either_parent_but_for_repairs(name: str) -> None:
    one, other = starting_drafts(name)[:2]
    source, mutation = Random(3), Mutation(recorded(name))
    taken = set()
    for _ in range(20):
        child = mutation.crossed(one, other, source)
        assert child is not None and child.moves == (CROSSOVER,)
        taken |= {func for func, draft in child.draft.funcs.items() if draft == other.funcs[func] != one.funcs[func]}
    assert len(taken) > 2


def test_what_an_rfactor_makes_is_not_torn_apart() -> None:
    """Its intermediate would be without the Func that makes it."""
    into, plain = with_families()
    makes = StageSchedule("second", 0, (Split("r", "ro", "ri", 8), RFactor((("ri", "u"),), "partial")))
    scheduled = StageSchedule("partial", None, (ComputeAt(ROOT),))
    other = plain.with_func("second", FuncDraft(LoopLevel("output", "y"), (), frozen=(makes,)))
    other = other.with_func("partial", FuncDraft(ROOT, (), origin=Intermediate(), frozen=(scheduled,)))
    for seed in range(40):
        made = crossover(DraftStructure(into, chain()), other, Random(seed))
        assert made is None or (made.funcs["second"] == into.funcs["second"] and "partial" not in made.funcs)
        back = crossover(DraftStructure(other, chain()), into, Random(seed))
        assert back is None or all(back.funcs[name] == other.funcs[name] for name in ("second", "partial"))
