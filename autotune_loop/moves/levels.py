"""Moves that change where a Func is computed and stored, and whether it is at all."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.draft.edit import loops_of_kind, undo, with_stage
from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.moves.loops import are_over_same, is_free, lanes_of, may_be_vector, vectorized
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.schedule.directives import Directive, FoldStorage, HoistStorage, Split
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel


def move_compute(context: MoveContext) -> Draft | None:
    """Compute a Func at another loop: the next one in or out rather than a far one."""
    name = context.pick_func([each for each in context.scheduled() if len(context.structure.levels(each)) > 1])
    if name is None:
        return None
    func, levels = context.draft.funcs[name], context.structure.levels(name)
    if func.compute in levels and context.source.random() < 0.6:
        place = levels.index(func.compute)
        levels = (*levels[max(0, place - 1) : place], *levels[place + 1 : place + 2])
    level = context.pick([each for each in levels if each != func.compute])
    if level is None:
        return None
    return _apart(context, name) if level == ROOT else _within(context.structure, name, level)


def _within(structure: DraftStructure, name: str, level: LoopLevel) -> Draft:
    """The draft with a Func computed at a loop of a consumer, without strips that are longer than what is needed there.

    Halide computes whole strips: 32 rows for the 3 that are read.
    """
    moved = structure.draft.with_func(name, placed(structure.draft.funcs[name], level))
    for index in range(len(moved.funcs[name].stages)):
        while (whole := _without_long_strip(DraftStructure(moved, structure.names), Site(name, index))) is not None:
            moved = with_stage(moved, name, index, *whole)
    return moved


def _without_long_strip(structure: DraftStructure, site: Site) -> tuple[StageDraft, dict[str, str]] | None:
    stage, extents = structure.draft.funcs[site.func].stages[site.stage], structure.loop_extents(site)
    for made in stage.transforms:
        if isinstance(made, Split) and isinstance(made.factor, int) and stage.kind(made.inner) is None:
            whole = undo(stage, made) if made.factor >= extents.get(made.old, 0) else None
            if whole is not None:
                return whole
    return None


def _apart(context: MoveContext, name: str) -> Draft:
    """The draft with a Func at the root, in tasks.

    Where its loops are over the same variables as those that it leaves, they become like them, and what was computed
    there for it alone comes along: so a long chain of stages is cut in two.
    """
    draft, level = context.draft, context.draft.funcs[name].compute
    moved = draft.with_func(name, placed(draft.funcs[name], ROOT))
    host = None if level is None else draft.funcs.get(level.func or "")
    own, of_host = moved.funcs[name].stages, host.stages if host is not None else ()
    if level is not None and of_host and len(own) == 1 and are_over_same(of_host[0], own[0]):
        like = replace(of_host[0], also=())
        like = like if context.structure.may_have_vectors(name) else like.without_kind(LoopKind.VECTORIZED)
        moved = moved.with_func(name, moved.funcs[name].with_stage(0, like))
        for each in _made_for(context.structure, name):
            moved = moved.with_func(each, _inside(moved.funcs[each], level.func, name))
    structure = DraftStructure(moved, context.structure.names)
    for index, stage in enumerate(moved.funcs[name].stages):
        outer = stage.order[-1] if stage.order else None
        is_serial = outer is not None and stage.kind(outer) is None and not loops_of_kind(stage, LoopKind.PARALLEL)
        if outer is not None and is_serial and is_free(structure, Site(name, index), outer):
            stage = stage.with_kind(outer, LoopKind.PARALLEL)
            moved = moved.with_func(name, moved.funcs[name].with_stage(index, stage))
    return moved


def _made_for(structure: DraftStructure, name: str) -> set[str]:
    """What is computed in others' loops for a Func alone, or for such Funcs."""
    found = {name}
    while more := {
        each
        for each, func in structure.draft.funcs.items()
        if each not in found and func.compute not in (None, ROOT) and not func.frozen
        if (users := structure.users.get(each)) and all(user.func in found for user in users)
    }:
        found |= more
    return found - {name}


def _inside(func: FuncDraft, before: str | None, now: str) -> FuncDraft:
    """A Func computed and stored in the loops of another one than before, which has loops of the same names."""

    def level(of: LoopLevel | None) -> LoopLevel | None:
        return LoopLevel(now, of.variable) if of is not None and of.func == before and before is not None else of

    return replace(func, compute=level(func.compute), store=level(func.store))


def move_store(context: MoveContext) -> Draft | None:
    """Store a Func further out than it is computed, so that it is computed once; or no longer."""
    name = context.pick_func([each for each in context.scheduled() if context.structure.stores(each)])
    if name is None:
        return None
    func = context.draft.funcs[name]
    choices: list[LoopLevel | None] = [None, *context.structure.stores(name)]
    store = context.pick([each for each in choices if each != func.store])
    return context.draft.with_func(name, replace(func, store=store, storage=_unfolded(func)))


def slide(context: MoveContext) -> Draft | None:
    """A sliding window: computed in an inner loop, stored in one further out."""
    name = context.pick_func([each for each in context.scheduled() if len(context.structure.levels(each)) > 1])
    if name is None:
        return None
    level = context.pick(context.structure.levels(name)[:-1])
    if level is None:
        return None
    moved = _within(context.structure, name, level)
    store = context.pick(DraftStructure(moved, context.structure.names).stores(name))
    return None if store is None else moved.with_func(name, replace(moved.funcs[name], store=store))


def inline(context: MoveContext) -> Draft | None:
    """Compute a Func wherever it is used."""
    names = [
        name
        for name in context.scheduled()
        if len(context.draft.funcs[name].stages) == 1
        and (shape := context.structure.shape(name)) is not None
        and not (shape.is_output or shape.is_extern)
    ]
    name = context.pick(names)
    if name is None:
        return None
    return context.draft.with_func(name, replace(context.draft.funcs[name], compute=None, store=None, storage=()))


def stop_inlining(context: MoveContext) -> Draft | None:
    """Give an inlined Func loops of its own, vectorised, at a loop of its consumers."""
    names = [
        name
        for name in context.draft.funcs
        if context.may_change(name)
        and context.structure.is_inlined(name)
        and context.structure.shape(name) is not None
        and context.structure.users.get(name)
    ]
    name = context.pick(names)
    if name is None:
        return None
    level = context.pick(context.structure.levels(name))
    if level is None:
        return None
    return with_own_loops(context.structure, name, level, context)


def with_own_loops(structure: DraftStructure, name: str, level: LoopLevel, context: MoveContext) -> Draft:
    """The draft with a Func computed at a level: its innermost loop a vector, at the root its rows in parallel."""
    draft = structure.draft.with_func(name, placed(structure.draft.funcs[name], level))
    changed = DraftStructure(draft, structure.names)
    site, stage = Site(name, 0), draft.funcs[name].stages[0]
    loops = [loop for loop in stage.order if may_be_vector(changed, site, loop)]
    if loops and not stage.kinds and changed.may_have_vectors(name):
        vector = vectorized(changed, site, stage, loops[0], lanes_of(changed, name))
        stage = vector or stage
    outer = stage.order[-1] if stage.order else None
    if level == ROOT and outer is not None and stage.kind(outer) is None and context.source.random() < 0.8:
        stage = stage.with_kind(outer, LoopKind.PARALLEL)
    return draft.with_func(name, draft.funcs[name].with_stage(0, stage))


def placed(func: FuncDraft, level: LoopLevel) -> FuncDraft:
    """The Func computed at a level and stored there, in serial loops unless that is the root."""
    stages = func.stages
    if level != ROOT:
        stages = tuple(stage.without_kind(LoopKind.PARALLEL) for stage in stages)
    return replace(func, compute=level, store=None, storage=_unfolded(func), stages=stages)


def _unfolded(func: FuncDraft) -> tuple[Directive, ...]:
    return tuple(each for each in func.storage if not isinstance(each, FoldStorage | HoistStorage))
