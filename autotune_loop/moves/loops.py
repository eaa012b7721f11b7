"""Moves that change a stage's loops: split, undone, reordered, vectorised, unrolled, in parallel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from halide_autotune.autotune_loop.draft.edit import (
    fuse,
    loops_of_kind,
    move_to,
    redirect,
    split,
    undo,
    with_loops_of,
    with_stage,
)
from halide_autotune.autotune_loop.draft.factors import LARGEST_UNROLLED, is_within_output
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.schedule.directives import Atomic, ComputeWith, Fuse, Split
from halide_autotune.autotune_loop.schedule.values import LoopLevel, Stage

_FACTORS = (2, 4, 8, 16, 32, 64, 128)
_UNROLL_FACTORS = (2, 3, 4, 6, 8)
_KEEPS_VECTOR = 0.75
# Points: beginning a task takes as long as computing thousands.
_LEAST_IN_TASK = 256
_ENOUGH_TASKS = 64


def split_loop(context: MoveContext) -> Draft | None:
    """Split a loop, and leave the inner one where it is or move it further in.

    What is computed at the loop still is so for each of its iterations, or for all that the outer one stands for.
    """
    site = context.pick_site()
    if site is None:
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    extents = context.structure.loop_extents(site)
    loop = context.pick(
        [each for each in stage.order if extents[each] > 2 and stage.kind(each) in (None, LoopKind.PARALLEL)]
    )
    factor = None if loop is None else context.pick([each for each in _FACTORS if each < extents[loop]])
    if loop is None or factor is None:
        return None
    changed, outer, inner = split(stage, loop, factor)
    place = context.source.randint(0, changed.order.index(inner))
    moved = move_to(changed, inner, place)
    changed = moved if is_legal_order(context.structure, site, moved) else changed
    return _with_loops(context, site, changed, {loop: _level_of(changed, outer, inner)})


def _level_of(stage: StageDraft, outer: str, inner: str) -> str:
    """Where to compute what was computed at a loop that is split: not inside of loops that were inside of it."""
    return inner if stage.order.index(inner) + 1 == stage.order.index(outer) else outer


def _with_loops(context: MoveContext, site: Site, stage: StageDraft, gone: Mapping[str, str]) -> Draft:
    """The draft with another stage, and what was computed at loops of it that are gone at those in their place."""
    draft = with_stage(context.draft, site.func, site.stage, stage)
    moved = redirect(draft, site.func, gone)
    changed = [name for name, func in moved.funcs.items() if func != draft.funcs[name]]
    # Another stage of the Func may have loops of these names, which stay.
    inside = _read_within(context.structure, site) if changed else set()
    for name in changed:
        if name in inside:
            draft = draft.with_func(name, moved.funcs[name])
    return draft


def _read_within(structure: DraftStructure, site: Site) -> set[str]:
    """What is read in the loops of a stage alone, by itself or by such Funcs."""
    found: set[str] = set()
    while more := {
        name
        for name, users in structure.users.items()
        if name not in found and users and all(user == site or user.func in found for user in users)
    }:
        found |= more
    return found


def undo_split(context: MoveContext) -> Draft | None:
    """Take back a split or a fusion that nothing was made of."""
    site = context.pick_site()
    if site is None:
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    undone = [found for each in stage.transforms if (found := undo(stage, each)) is not None]
    chosen = context.pick(undone)
    return None if chosen is None else with_stage(context.draft, site.func, site.stage, *chosen)


def reorder_loops(context: MoveContext) -> Draft | None:
    """Move a loop to another place."""
    site = context.pick_site()
    if site is None:
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    if len(stage.order) < 2:
        return None
    loop = context.source.choice(stage.order)
    place = context.pick([each for each in range(len(stage.order)) if each != stage.order.index(loop)])
    changed = None if place is None else move_to(stage, loop, place)
    if changed is None or not is_legal_order(context.structure, site, changed):
        return None
    return with_stage(context.draft, site.func, site.stage, changed)


def vectorize(context: MoveContext) -> Draft | None:
    """Vectorise a loop; what was a vector is a serial loop then.

    Where there is a vector another one is seldom better, and none of a loop over the same variable, whose iterations
    lie a vector apart: how many lanes it has is for the moves of factors.
    """
    site = context.pick_site()
    if site is None or not context.structure.may_have_vectors(site.func):
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    lanes = lanes_of(context.structure, site.func) * context.source.choice((1, 1, 2))
    roots = {root for each in loops_of_kind(stage, LoopKind.VECTORIZED) for root in stage.root_of(each)}
    if roots and context.source.random() < _KEEPS_VECTOR:
        return None
    loops = [each for each in stage.order if roots.isdisjoint(stage.root_of(each))]
    loop = context.pick([each for each in loops if may_be_vector(context.structure, site, each)])
    if loop is None:
        return None
    changed = vectorized(context.structure, site, stage, loop, lanes)
    if changed is None:
        return None
    made = changed.transforms[len(stage.transforms) :]
    gone = {each.old: each.outer for each in made if isinstance(each, Split)}
    return _with_loops(context, site, changed, gone)


def unroll(context: MoveContext) -> Draft | None:
    """Unroll a loop or a part of it; one that is unrolled becomes serial."""
    site = context.pick_site()
    if site is None:
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    unrolled = loops_of_kind(stage, LoopKind.UNROLLED)
    if unrolled and context.source.random() < 0.3:
        return with_stage(context.draft, site.func, site.stage, stage.with_kind(context.source.choice(unrolled), None))
    extents = context.structure.loop_extents(site)
    loop = context.pick([each for each in stage.order if stage.kind(each) is None and extents[each] > 1])
    if loop is None:
        return None
    if extents[loop] <= LARGEST_UNROLLED and context.structure.is_constant(site, loop):
        return with_stage(context.draft, site.func, site.stage, stage.with_kind(loop, LoopKind.UNROLLED))
    factor = context.pick([each for each in _UNROLL_FACTORS if each <= extents[loop]])
    if factor is None:
        return None
    changed, outer, inner = split(stage, loop, factor)
    changed = changed.with_kind(inner, LoopKind.UNROLLED)
    inside_vector = move_to(
        changed, inner, min(changed.order.index(inner), len(loops_of_kind(stage, LoopKind.VECTORIZED)))
    )
    if context.source.random() < 0.6 and is_legal_order(context.structure, site, inside_vector):
        changed = inside_vector
    return _with_loops(context, site, changed, {loop: _level_of(changed, outer, inner)})


def parallelize(context: MoveContext) -> Draft | None:
    """Run another loop in parallel, one of the outermost; or no longer, as for what is computed inside others."""
    site = context.pick_site()
    if site is None:
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    now = loops_of_kind(stage, LoopKind.PARALLEL)
    if now and (context.structure.outside(site.func) or context.source.random() < 0.3):
        return with_stage(context.draft, site.func, site.stage, stage.with_kind(context.source.choice(now), None))
    free = [each for each in stage.order if stage.kind(each) is None and is_free(context.structure, site, each)]
    loop = context.pick([each for each in free[-2:] if _has_enough_inside(context.structure, site, each)])
    if loop is None:
        return None
    extents = context.structure.loop_extents(site)
    # Tasks within tasks are of use where the outer ones are few.
    if math.prod(extents[each] for each in now) >= _ENOUGH_TASKS or context.source.random() < 0.4:
        for each in now:
            stage = stage.with_kind(each, None)
    return with_stage(context.draft, site.func, site.stage, stage.with_kind(loop, LoopKind.PARALLEL))


def fuse_for_tasks(context: MoveContext) -> Draft | None:
    """Fuse the two outermost loops into one that runs in parallel: more tasks, all alike."""
    site = context.pick_site()
    if site is None:
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    if len(stage.order) < 3:
        return None
    inner, outer = stage.order[-2:]
    if not all(is_free(context.structure, site, each) for each in (inner, outer)):
        return None
    if not _has_enough_inside(context.structure, site, inner):
        return None
    changed, fused = fuse(stage, inner, outer)
    gone = {inner: fused, outer: fused}
    return with_stage(context.draft, site.func, site.stage, changed.with_kind(fused, LoopKind.PARALLEL), gone)


def _has_enough_inside(structure: DraftStructure, site: Site, loop: str) -> bool:
    """Whether an iteration of a loop is worth a task: some points, or something computed in it."""
    stage, extents = structure.draft.funcs[site.func].stages[site.stage], structure.loop_extents(site)
    inside = stage.order[: stage.order.index(loop)]
    if math.prod(extents[each] for each in inside) >= _LEAST_IN_TASK:
        return True
    levels = {LoopLevel(site.func, each) for each in (*inside, loop)}
    return any(func.compute in levels for func in structure.draft.funcs.values())


def tile(context: MoveContext) -> Draft | None:
    """Split two loops, and put both inner ones inside both outer ones."""
    site = context.pick_site()
    if site is None:
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    extents = context.structure.loop_extents(site)
    loops = [each for each in stage.order if extents[each] >= 8 and stage.kind(each) in (None, LoopKind.PARALLEL)]
    if len(loops) < 2:
        return None
    first, second = sorted(context.source.sample(loops, 2), key=stage.order.index)
    changed, first_outer, first_inner = split(stage, first, _tile_factor(context, site, first, (4, 8, 16, 32, 64)))
    changed, second_outer, second_inner = split(changed, second, _tile_factor(context, site, second, (4, 8, 16, 32)))
    changed = move_to(changed, second_inner, changed.order.index(first_inner) + 1)
    if not is_legal_order(context.structure, site, changed):
        return None
    gone = {first: first_outer, second: second_outer}
    return _with_loops(context, site, changed, gone)


def _tile_factor(context: MoveContext, site: Site, loop: str, factors: Sequence[int]) -> int:
    return context.source.choice([each for each in factors if is_within_output(context.structure, site, loop, each)])


def compute_with(context: MoveContext) -> Draft | None:
    """Put a stage into the loops of a Func with equal ones, which is computed at the same place; or take it out."""
    name = context.pick_func([each for each in context.scheduled() if len(context.draft.funcs[each].stages) == 1])
    if name is None:
        return None
    func = context.draft.funcs[name]
    stage = func.stages[0]
    fused = [each for each in stage.also if isinstance(each, ComputeWith)]
    if fused:
        return with_stage(context.draft, name, 0, replace(stage, also=tuple(e for e in stage.also if e not in fused)))
    others = [other for other in context.draft.funcs if _may_share_loops(context.structure, name, other)]
    other = context.pick(others)
    if other is None:
        return None
    alike = context.draft.funcs[other].stages[0]
    variable = context.pick([each for each in alike.order if alike.kind(each) is not LoopKind.VECTORIZED])
    if variable is None:
        return None
    together = replace(alike, also=(*stage.also, ComputeWith(Stage(other), variable)))
    return with_stage(context.draft, name, 0, together)


def _may_share_loops(structure: DraftStructure, name: str, other: str) -> bool:
    """Whether two Funcs are computed at one place, over the same variables, and neither needs the other; nor does any
    of those whose loops they share."""
    one, two = structure.draft.funcs[name], structure.draft.funcs[other]
    return (
        name != other
        and len(two.stages) == 1
        and not structure.is_inlined(other)
        and (one.compute, one.store) == (two.compute, two.store)
        and are_over_same(one.stages[0], two.stages[0])
        and not any(isinstance(each, ComputeWith) for each in two.stages[0].also)
        and not any(
            structure.depends(each, another) or structure.depends(another, each)
            for each in with_loops_of(structure.draft, name)
            for another in with_loops_of(structure.draft, other)
        )
    )


def are_over_same(one: StageDraft, two: StageDraft) -> bool:
    """Whether two stages have loops over the same variables."""
    first, second = ({root for loop in each.order for root in each.root_of(loop)} for each in (one, two))
    return first == second


def vectorized(structure: DraftStructure, site: Site, stage: StageDraft, loop: str, lanes: int) -> StageDraft | None:
    """The stage with a vector of a loop's values, as its innermost loop; None where that is not legal."""
    for each in loops_of_kind(stage, LoopKind.VECTORIZED):
        stage = stage.with_kind(each, None)
    extent = structure.loop_extents(site)[loop]
    if not is_within_output(structure, site, loop, lanes):
        lanes = 1 << (extent.bit_length() - 1)  # the largest vector that fits
    if lanes < 2:
        return None
    if extent <= lanes and structure.is_constant(site, loop):
        vector = loop
    else:
        stage, _, vector = split(stage, loop, lanes)
    changed = move_to(stage.with_kind(vector, LoopKind.VECTORIZED), vector, 0)
    if is_ordered(structure, site, vector, stage) and not any(isinstance(each, Atomic) for each in changed.also):
        changed = replace(changed, also=(*changed.also, Atomic()))
    return changed if is_legal_order(structure, site, changed) else None


def with_copies(structure: DraftStructure, site: Site, most: int) -> StageDraft:
    """The stage with its short loops over arguments unrolled around its vectors, its body so many times at most."""
    stage, extents = structure.draft.funcs[site.func].stages[site.stage], structure.loop_extents(site)
    inside, copies = len(loops_of_kind(stage, LoopKind.VECTORIZED)), 1
    reductions = {variable.identifier for variable in structure.loops(site) if variable.is_reduction}
    for loop in stage.order:
        is_short = stage.kind(loop) is None and 1 < extents[loop] <= most // copies
        if is_short and reductions.isdisjoint(stage.root_of(loop)) and structure.is_constant(site, loop):
            copies *= extents[loop]
            stage = move_to(stage.with_kind(loop, LoopKind.UNROLLED), loop, inside)
            inside += 1
    return stage


def lanes_of(structure: DraftStructure, name: str) -> int:
    """How many of a Func's values a vector holds."""
    shape = structure.shape(name)
    assert shape is not None
    lanes = structure.names.shape.vector_bytes // max(1, shape.narrowest_bytes)
    return max(2, lanes, structure.least_lanes(name))


def may_be_vector(structure: DraftStructure, site: Site, loop: str) -> bool:
    """Whether a loop may be vectorised: its iterations are independent, or can be merged."""
    shape = structure.shape(site.func)
    if shape is None:
        return False
    stage = structure.draft.funcs[site.func].stages[site.stage]
    if structure.loop_extents(site)[loop] < 2 or stage.kind(loop) is LoopKind.PARALLEL:
        return False
    return not is_ordered(structure, site, loop, stage) or shape.stages[site.stage].is_associative


def is_free(structure: DraftStructure, site: Site, loop: str) -> bool:
    """Whether a loop's iterations may run at once."""
    return not is_ordered(structure, site, loop, structure.draft.funcs[site.func].stages[site.stage])


def is_ordered(structure: DraftStructure, site: Site, loop: str, stage: StageDraft) -> bool:
    """Whether a loop comes from a reduction's whose iterations have an order."""
    ordered = structure.ordered_loops(site)
    return any(root in ordered for root in stage.root_of(loop))


def is_legal_order(structure: DraftStructure, site: Site, stage: StageDraft) -> bool:
    """Whether the ordered loops of a reduction keep their order; those that can be merged may have any."""
    shape = structure.shape(site.func)
    assert shape is not None
    if shape.stages[site.stage].is_associative:
        return True
    wanted = list(structure.ordered_loops(site))
    for made in stage.transforms:
        if isinstance(made, Split) and made.old in wanted:
            place = wanted.index(made.old)
            wanted[place : place + 1] = [made.inner, made.outer]
        elif isinstance(made, Fuse):
            kept = [name for name in (made.inner, made.outer) if name in wanted]
            wanted = [made.fused if name in kept[:1] else name for name in wanted if name not in kept[1:]]
    return [loop for loop in stage.order if loop in wanted] == wanted
