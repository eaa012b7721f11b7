"""Moves that change where a Func is computed and stored, and whether it is at all."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.moves.loops import lanes_of, may_be_vector, vectorized
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.schedule.directives import Directive, FoldStorage, HoistStorage
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
    return None if level is None else context.draft.with_func(name, placed(func, level))


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
    moved = context.draft.with_func(name, placed(context.draft.funcs[name], level))
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
