"""The move that decides which loops Halide compiles in parts."""

from __future__ import annotations

from random import Random

from halide_autotune.autotune_loop.draft.model import Draft, Partitioning
from halide_autotune.autotune_loop.draft.partitioning import with_short_code
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from tests.drafted_pipelines import by_rows, chain, plain_draft

ALONE = {move.name: 0.0 for move in MOVES} | {"partition": 1.0}
NAMES = chain()


def children(parent: Draft, count: int = 40) -> list[tuple[Partitioning, ...]]:
    """What all stages of some children have."""
    found = [Mutation(NAMES).child(parent, Random(seed), ALONE, 1) for seed in range(count)]
    return [
        tuple(stage.partitioning for func in child.draft.funcs.values() for stage in func.stages)
        for child in found
        if child is not None
    ]


def test_where_halide_takes_all_apart_one_func_changes_or_all_do() -> None:
    auto, inner, none = Partitioning
    one = {tuple(other if place == at else auto for place in range(3)) for at in range(3) for other in (inner, none)}
    assert {*children(by_rows(plain_draft(NAMES)))} == {(inner,) * 3, *one}


def test_else_one_func_changes() -> None:
    draft = with_short_code(DraftStructure(by_rows(plain_draft(NAMES)), NAMES))
    auto, inner, none = Partitioning
    expected = {
        tuple(other if place == at else inner for place in range(3)) for at in range(3) for other in (auto, none)
    }
    assert {*children(draft)} == expected
