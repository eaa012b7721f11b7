"""The move that takes a reduction apart."""

from __future__ import annotations

from halide_autotune.autotune_loop.draft.factor import (
    Factoring,
    can_be_factored,
    factored,
    factoring_for,
    is_taken_apart,
    whole_again,
)
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.moves.loops import lanes_of
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.schedule.values import ROOT

_PARTS = (2, 3, 4, 6, 8, 16, 32, 64)


def rfactor(context: MoveContext) -> Draft | None:
    """Sum a reduction in parts, each by a task, and then those; or in other parts than now.

    What was computed in its loops is so at the root.
    """
    structure = context.structure
    apart = [name for name in structure.names.shapes if is_taken_apart(context.draft, name)]
    whole = [
        name
        for name in context.scheduled()
        if context.draft.funcs[name].compute == ROOT and can_be_factored(structure, name)
    ]
    name = context.pick_func([*apart, *whole])
    if name is None:
        return None
    if name in apart:
        structure = DraftStructure(whole_again(structure, name), structure.names)
    if not can_be_factored(structure, name):
        return None  # apart in another way
    vector = lanes_of(structure, name)
    for parts in context.source.sample(_PARTS, len(_PARTS)):
        how = factoring_for(structure, name, vector, parts)
        if how.lanes > 1:
            how = Factoring(how.strip, vector * context.source.choice((1, 2, 4, 8)))
        made = factored(structure, name, how, vector)
        if made != context.draft:
            return made
    return None
