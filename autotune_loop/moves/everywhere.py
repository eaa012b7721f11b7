"""Moves that change all Funcs alike.

A person's schedule of a large pipeline mostly follows one idea throughout, as a vector width or a row for each task: a
change of it in one of many Funcs is lost in the noise.
"""

from __future__ import annotations

from halide_autotune.autotune_loop.draft.edit import loops_of_kind, split, with_factor, with_stage
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.structure import Site
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.moves.numbers import pick_doubling
from halide_autotune.autotune_loop.schedule.directives import Split
from halide_autotune.autotune_loop.schedule.values import ROOT

_ROWS = (2, 4, 8, 16, 32)
# So many tasks are left of a loop at least.
_LEAST_TASKS = 8
# In fewer Funcs it is a change like others.
_FEWEST_FUNCS = 3


def change_factors_everywhere(context: MoveContext) -> Draft | None:
    """The double or the half of a factor in all Funcs, wherever a loop of that kind is split by it."""
    found = pick_doubling(context)
    if found is None:
        return None
    site, made, factor = found
    kind = context.draft.funcs[site.func].stages[site.stage].kind(made.inner)
    draft, changed = context.draft, set()
    for name in context.scheduled():
        for index, stage in enumerate(context.draft.funcs[name].stages):
            extents = context.structure.loop_extents(Site(name, index))
            for each in stage.transforms:
                if not isinstance(each, Split) or each.factor != made.factor:
                    continue
                if stage.kind(each.inner) is kind and factor <= extents[each.old]:
                    draft = with_stage(draft, name, index, with_factor(draft.funcs[name].stages[index], each, factor))
                    changed.add(name)
    return draft if len(changed) >= _FEWEST_FUNCS else None


def strips_everywhere(context: MoveContext) -> Draft | None:
    """Several iterations for each task in all Funcs at the root, wherever each iteration is a task of its own."""
    rows = context.source.choice(_ROWS)
    draft, changed = context.draft, set()
    for name in context.scheduled():
        if context.draft.funcs[name].compute != ROOT:
            continue
        for index, stage in enumerate(context.draft.funcs[name].stages):
            extents = context.structure.loop_extents(Site(name, index))
            outer_ones = {each.outer for each in stage.transforms if isinstance(each, Split)}
            for loop in loops_of_kind(stage, LoopKind.PARALLEL):
                if loop not in outer_ones and extents[loop] >= _LEAST_TASKS * rows:
                    strips, _, inner = split(draft.funcs[name].stages[index], loop, rows)
                    draft = with_stage(draft, name, index, strips, {loop: inner})
                    changed.add(name)
    return draft if len(changed) >= _FEWEST_FUNCS else None
