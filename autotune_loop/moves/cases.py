"""The move that compiles the channels of an output apart."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.draft.cases import cases_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.moves.move import MoveContext


def specialize(context: MoveContext) -> Draft | None:
    """Compile an output once more for the channels that the estimates say, each of which is computed in its own way."""
    found = {
        name: cases
        for name, func in context.draft.funcs.items()
        if not func.cases and (cases := cases_of(context.structure, name))
    }
    name = context.pick_func([*found])
    return (
        None if name is None else context.draft.with_func(name, replace(context.draft.funcs[name], cases=found[name]))
    )
