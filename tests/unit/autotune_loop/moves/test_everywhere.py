"""Moves that change all Funcs of a schedule that follows one idea throughout, as a person's does."""

from __future__ import annotations

from random import Random

from halide_autotune.autotune_loop.draft.model import Draft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import Split
from halide_autotune.autotune_loop.schedule.values import LoopLevel
from tests.drafted_pipelines import by_rows, chain, func, pipeline, plain_draft, read, with_split

NAMES = chain()
LATER = [each for each in NAMES.shape.funcs if each.name != "first"]
FUNCS = ("first", "second", "output")


def alone(move: str) -> dict[str, float]:
    return {each.name: 0.0 for each in MOVES} | {move: 1.0}


def children(draft: Draft, move: str) -> list[Draft]:
    mutation = Mutation(NAMES)
    made = [mutation.child(draft, Random(seed), alone(move), 1) for seed in range(20)]
    for child in made:
        if child is not None:
            assert child.moves == (move,)
            check_schedule(schedule_of(child.draft, NAMES, "f"))
    return [child.draft for child in made if child is not None]


def stage_of(draft: Draft, name: str) -> StageDraft:
    return draft.funcs[name].stages[0]


def test_a_factor_is_changed_in_all_funcs() -> None:
    found = set()
    for child in children(by_rows(plain_draft(NAMES)), "factors everywhere"):
        factors = {
            made.factor for name in FUNCS for made in stage_of(child, name).transforms if isinstance(made, Split)
        }
        assert len(factors) == 1
        found |= factors
    assert found == {8, 32}


def test_another_use_of_the_same_factor_is_left() -> None:
    draft = by_rows(plain_draft(NAMES))
    tasks = with_split(stage_of(draft, "output"), "y", 16)
    draft = draft.with_func("output", draft.funcs["output"].with_stage(0, tasks.with_kind("yo", LoopKind.PARALLEL)))
    for child in children(draft, "factors everywhere"):
        assert stage_of(child, "output").transforms[1] == tasks.transforms[1]


def test_tasks_are_strips_in_all_funcs_at_the_root() -> None:
    found = set()
    for child in children(by_rows(plain_draft(NAMES)), "strips everywhere"):
        structure = DraftStructure(child, NAMES)
        for name in FUNCS:
            stage = stage_of(child, name)
            (strips,) = [made for made in stage.transforms if isinstance(made, Split) and made.old == "y"]
            assert stage.kind(strips.outer) is LoopKind.PARALLEL and stage.kind(strips.inner) is None
            assert structure.loop_extents(Site(name, 0))[strips.outer] >= 8
            found.add(strips.factor)
    assert found == {2, 4}, "of 32 rows"
    assert not children(by_rows(plain_draft(NAMES, first=LoopLevel("second", "y"))), "strips everywhere"), "two are few"


def test_what_was_computed_in_a_row_stays_in_one() -> None:
    names = pipeline(func("zero", (66, 34)), func("first", (66, 34), read("zero", ("x", 1), ("y", 1))), *LATER)
    draft = by_rows(plain_draft(names, zero=LoopLevel("first", "y")))
    made = Mutation(names).child(draft, Random(1), alone("strips everywhere"), 1)
    assert made is not None and made.draft.funcs["zero"].compute == LoopLevel("first", "yi")


def test_strips_are_not_made_of_strips() -> None:
    (child, *_) = children(by_rows(plain_draft(NAMES)), "strips everywhere")
    assert not children(child, "strips everywhere")
