"""What a stage reads of a Func at the root may be fetched ahead, further ahead, or no longer."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.repair import repair
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import Prefetch
from halide_autotune.autotune_loop.schedule.values import Source
from tests.drafted_pipelines import chain, plain_draft

NAMES = chain()
ALONE = {move.name: 0.0 for move in MOVES} | {"prefetch": 1.0}


def children(draft: Draft) -> list[Draft]:
    made = [Mutation(NAMES).child(draft, Random(seed), ALONE, 1) for seed in range(30)]
    for child in made:
        if child is not None:
            check_schedule(schedule_of(child.draft, NAMES, "f"))
    return [child.draft for child in made if child is not None]


def fetched(draft: Draft) -> set[tuple[str, Prefetch]]:
    return {
        (name, each) for name, func in draft.funcs.items() for each in func.stages[0].also if isinstance(each, Prefetch)
    }


def ahead(distance: int) -> Draft:
    """`output` fetches rows of `second`."""
    draft = plain_draft(NAMES)
    also = (Prefetch(Source("second"), "y", "y", distance),)
    func = draft.funcs["output"]
    return draft.with_func("output", func.with_stage(0, replace(func.stages[0], also=also)))


def test_what_a_stage_reads_is_fetched_ahead_in_a_loop_that_is_not_the_innermost() -> None:
    found = {each for child in children(plain_draft(NAMES)) for each in fetched(child)}
    assert {(name, each.source.identifier, each.at, each.base) for name, each in found} == {
        ("second", "first", "y", "y"),
        ("output", "second", "y", "y"),
    }
    assert {each.offset for _, each in found} == {1, 2, 4, 8, 16}


def test_what_is_fetched_gets_another_distance_or_is_no_longer() -> None:
    of_output = [{each.offset for name, each in fetched(child) if name == "output"} for child in children(ahead(4))]
    assert set(map(frozenset, of_output)) == {frozenset(each) for each in ([], [1], [2], [4], [8], [16])}


def test_what_is_inlined_or_gone_is_not_fetched() -> None:
    draft = ahead(4)
    assert fetched(repair(draft, NAMES)) == fetched(draft)
    inlined = draft.with_func("second", replace(draft.funcs["second"], compute=None))
    assert not fetched(repair(inlined, NAMES))
    func = draft.funcs["output"]
    of_nothing = replace(func.stages[0], also=(Prefetch(Source("a_copy_that_is_gone"), "y", "y", 4),))
    assert not fetched(repair(draft.with_func("output", func.with_stage(0, of_nothing)), NAMES))
