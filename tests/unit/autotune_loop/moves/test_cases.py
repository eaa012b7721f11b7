"""The move that compiles the channels of an output apart."""

from __future__ import annotations

from random import Random

from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from tests.drafted_pipelines import channels, plain_draft

ALONE = {move.name: 0.0 for move in MOVES} | {"specialize": 1.0}


def test_channels_are_compiled_apart_once() -> None:
    names = channels()
    child = Mutation(names).child(plain_draft(names, colour=None), Random(1), ALONE, 1)
    assert child is not None and child.draft.funcs["output"].cases == ("z",)
    assert Mutation(names).child(child.draft, Random(1), ALONE, 1) is None


def test_nothing_is_compiled_apart_that_is_alike() -> None:
    names = channels(cases=())
    assert Mutation(names).child(plain_draft(names, colour=None), Random(1), ALONE, 1) is None
