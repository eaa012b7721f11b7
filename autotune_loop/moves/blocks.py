"""The move that keeps a block of sums in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from halide_autotune.autotune_loop.draft.edit import loops_of_kind, reorder, split, with_stage
from halide_autotune.autotune_loop.draft.factor import plain_func
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.moves.loops import is_free, vectorized, with_copies
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.schedule.values import LoopLevel

# A reduction of fewer steps gains nothing from summing in registers.
_FEWEST_STEPS = 4
_COUNTS = (2, 3, 4, 6, 8)
# For what a step reads.
_OTHER_REGISTERS = 2


def register_block(context: MoveContext) -> Draft | None:
    """Sum several vectors, of several rows, at once: what a step of the reduction reads serves all of them.

    Where a Func reads the sums point by point, its loops are cut so, and the sums are computed for a block of it;
    elsewhere the loops of the sums are.
    """
    structure = context.structure
    name = context.pick_func([each for each in context.scheduled() if _is_long_sum(structure, each)])
    if name is None:
        return None
    reader = _reader_of_points(structure, name)
    site = reader or Site(name, len(context.draft.funcs[name].stages) - 1)
    cut = _cut(context, site)
    if cut is None or reader is None:
        return None if cut is None else cut[0]
    draft, level = cut
    vector = context.draft.funcs[reader.func].stages[reader.stage].order[0]
    return _summed_at(DraftStructure(draft, structure.names), name, level, structure.loop_extents(reader)[vector])


def _is_long_sum(structure: DraftStructure, name: str) -> bool:
    """Whether each point is a sum of its own of some steps."""
    shape = structure.shape(name)
    is_own = structure.draft.funcs[name].origin is None
    return is_own and shape is not None and shape.sum_steps >= _FEWEST_STEPS


def _reader_of_points(structure: DraftStructure, name: str) -> Site | None:
    """The stage that reads the sums, if it is the only one, and reads each of them once."""
    readers = structure.users.get(name, ())
    if len(readers) != 1 or set(structure.region_at(name, None)) != {1}:
        return None
    (reader,) = readers
    return reader if structure.draft.funcs[reader.func].stages and not structure.names.shapes[name].is_output else None


def _cut(context: MoveContext, site: Site) -> tuple[Draft, LoopLevel] | None:
    """The draft with a block of a stage unrolled inside its other loops, and the innermost of those."""
    structure = context.structure
    stage = context.draft.funcs[site.func].stages[site.stage]
    if not stage.order or stage.kind(stage.order[0]) is not LoopKind.VECTORIZED:
        return None
    vector, extents = stage.order[0], structure.loop_extents(site)
    for loop in loops_of_kind(stage, LoopKind.UNROLLED):
        stage = stage.with_kind(loop, None)
    reductions = [loop for loop in stage.order if not is_free(structure, site, loop)]
    free = [loop for loop in stage.order if stage.kind(loop) is None and extents[loop] > 1 and loop not in reductions]
    along = [loop for loop in free if stage.root_of(loop) == stage.root_of(vector)][:1]
    across = [loop for loop in free if stage.root_of(loop) != stage.root_of(vector)][:1]
    most = structure.names.shape.vector_registers - _OTHER_REGISTERS
    along_counts, across_counts = ([1, *_counts(stage, extents, loops)] for loops in (along, across))
    sizes = [(vectors, rows) for vectors in along_counts for rows in across_counts if 1 < vectors * rows <= most]
    size = context.pick(sizes)
    if size is None:
        return None
    block, gone = [], {}
    for loops, count in zip((along, across), size, strict=True):
        for loop in loops if count > 1 else ():
            stage, outer, inner = split(stage, loop, count)
            stage = stage.with_kind(inner, LoopKind.UNROLLED)
            block.append(inner)
            gone[loop] = outer
    others = [*reductions, *(loop for loop in stage.order if loop not in (vector, *block, *reductions))]
    if not others:
        return None
    changed = reorder(stage, (vector, *block, *others))
    return with_stage(context.draft, site.func, site.stage, changed, gone), LoopLevel(site.func, others[0])


def _counts(stage: StageDraft, extents: Mapping[str, int], loops: Sequence[str]) -> list[int]:
    """How many iterations of a loop a block may have: a loop that a split made has whole blocks alone."""
    return [
        count
        for loop in loops
        for count in _COUNTS
        if count <= extents[loop] and (stage.root_of(loop) == (loop,) or extents[loop] % count == 0)
    ]


def _summed_at(structure: DraftStructure, name: str, level: LoopLevel, lanes: int) -> Draft:
    """The draft with sums computed in a loop, all that are needed there at once, and what was in their loops, too."""
    funcs = {
        each: replace(func, compute=level, store=None) if func.compute and func.compute.func == name else func
        for each, func in structure.draft.funcs.items()
    }
    draft = replace(structure.draft, funcs={**funcs, name: plain_func(structure.names, name, level)})
    for index in range(len(draft.funcs[name].stages)):
        within = DraftStructure(draft, structure.names)
        stage = _unrolled(within, Site(name, index), lanes)
        draft = with_stage(draft, name, index, stage)
    return draft


def _unrolled(structure: DraftStructure, site: Site, lanes: int) -> StageDraft:
    """The stage with vectors inside, then its unrolled loops over arguments, then those of the reduction."""
    stage = structure.draft.funcs[site.func].stages[site.stage]
    reductions = [variable.identifier for variable in structure.loops(site) if variable.is_reduction]
    extents = structure.loop_extents(site)
    vector = next((loop for loop in stage.order if loop not in reductions and extents[loop] >= lanes), None)
    if vector is not None and structure.may_have_vectors(site.func):
        stage = vectorized(structure, site, stage, vector, lanes) or stage
    with_vectors = with_stage(structure.draft, site.func, site.stage, stage)
    stage = with_copies(DraftStructure(with_vectors, structure.names), site, structure.names.shape.vector_registers)
    inside = loops_of_kind(stage, LoopKind.VECTORIZED, LoopKind.UNROLLED)
    return reorder(stage, (*inside, *reductions, *(loop for loop in stage.order if loop not in (*inside, *reductions))))
