"""The move that loads whole vectors of a table where data say which place of it is read."""

from __future__ import annotations

from halide_autotune.autotune_loop.draft.edit import with_stage
from halide_autotune.autotune_loop.draft.factor import plain_func
from halide_autotune.autotune_loop.draft.lookups import Lookup, lookup_at, stored_along, with_values_together
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.moves.levels import placed, with_own_loops
from halide_autotune.autotune_loop.moves.loops import lanes_of, vectorized, with_copies
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel

# A body of more copies is no longer worth its size.
_MOST_COPIES = 16
# Up to so many vectors of a place's values are loaded as one.
_MOST_VECTORS = 2


def vector_lookup(context: MoveContext) -> Draft | None:
    """Vectors of a table's values at one place: side by side in memory, and the innermost loop of what reads them.

    What reads them is computed for a block of its readers' points, beside where each of them looks.
    """
    lookup = _picked(context)
    if lookup is None:
        return None
    structure, name = context.structure, lookup.site.func
    draft = with_values_together(structure, lookup)
    if draft is None:
        return None
    if structure.is_inlined(name):
        level = _block_of(context, lookup)
        if level is None:
            return None
        draft = draft.with_func(name, placed(plain_func(structure.names, name, None), level))
    structure = DraftStructure(draft, structure.names)
    stage = _in_vectors(structure, lookup, context)
    if stage is None:
        return None
    structure = DraftStructure(with_stage(draft, name, lookup.site.stage, stage), structure.names)
    if context.source.random() < 0.5:  # else readers' vectors lie side by side
        stored = structure.draft.with_func(name, stored_along(structure, name, lookup.loop))
        structure = DraftStructure(stored, structure.names)
    return _with_places(structure, lookup, context)


def _picked(context: MoveContext) -> Lookup | None:
    """One of the stages that read tables of vectors and have none of them yet."""
    structure = context.structure
    found: dict[str, Lookup] = {}
    for site in structure.reads:
        func = context.draft.funcs.get(site.func)
        if func is None or not func.stages or func.origin is not None:
            continue
        lookup = lookup_at(structure, site)
        if lookup is not None and structure.may_have_vectors(site.func) and not _has_vectors(structure, lookup):
            found[site.func] = lookup
    name = context.pick_func([*found])
    return None if name is None else found[name]


def _has_vectors(structure: DraftStructure, lookup: Lookup) -> bool:
    """Whether the stage's vectors are of the values already."""
    stage = structure.draft.funcs[lookup.site.func].stages[lookup.site.stage]
    vector = stage.first_of_kind(LoopKind.VECTORIZED)
    return vector is not None and stage.root_of(vector) == (lookup.loop,)


def _block_of(context: MoveContext, lookup: Lookup) -> LoopLevel | None:
    """A loop of an inlined Func's readers: one of the innermost that need all values of a place."""
    structure, name = context.structure, lookup.site.func
    place = [variable.identifier for variable in structure.loops(lookup.site)].index(lookup.loop)
    inside = [level for level in structure.levels(name) if level != ROOT]
    whole = [level for level in inside if structure.region_at(name, level)[place] >= lookup.extent]
    return context.pick((whole or inside)[:2])


def _in_vectors(structure: DraftStructure, lookup: Lookup, context: MoveContext) -> StageDraft | None:
    """The stage with vectors of the values, and its short loops unrolled around them."""
    site = lookup.site
    stage = structure.draft.funcs[site.func].stages[site.stage]
    loop = next((each for each in stage.order if stage.root_of(each) == (lookup.loop,)), None)
    if loop is None or stage.kind(loop) is LoopKind.PARALLEL:
        return None
    lanes = context.source.choice(_lanes(structure, site.func, structure.loop_extents(site)[loop]))
    changed = vectorized(structure, site, stage, loop, lanes)
    if changed is None:
        return None
    structure = DraftStructure(with_stage(structure.draft, site.func, site.stage, changed), structure.names)
    return with_copies(structure, site, _MOST_COPIES)


def _lanes(structure: DraftStructure, name: str, extent: int) -> list[int]:
    """How long vectors may be: all of the values, or so many that nothing is left over."""
    natural, least = lanes_of(structure, name), structure.least_lanes(name)
    whole = [extent] if natural <= 2 * extent and extent <= _MOST_VECTORS * natural else []
    parts = [lanes for lanes in (natural, natural // 2) if 1 < lanes < extent and extent % lanes == 0]
    return [lanes for lanes in (*whole, *parts) if lanes >= least] or [natural]


def _with_places(structure: DraftStructure, lookup: Lookup, context: MoveContext) -> Draft:
    """The draft in which some of what says where to look is computed for a block at once, in vectors."""
    level = structure.draft.funcs[lookup.site.func].compute
    for other in lookup.others:
        if level is not None and level in structure.levels(other) and context.source.random() < 0.5:
            structure = DraftStructure(with_own_loops(structure, other, level, context), structure.names)
    return structure.draft
