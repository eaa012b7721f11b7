"""Moves that change how a Func is stored, and wrappers and clones of it."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.draft.lookups import stored_along
from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, StageDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.moves.levels import with_own_loops
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.schedule.check import make_identifier
from halide_autotune.autotune_loop.schedule.directives import AlignStorage, ReorderStorage, StoreIn
from halide_autotune.autotune_loop.schedule.model import Clone, Wrapper
from halide_autotune.autotune_loop.schedule.values import ROOT, MemoryType


def store_in(context: MoveContext) -> Draft | None:
    """Store a Func that is computed inside others on the stack, in registers, on the heap; or where Halide likes."""
    inside = [name for name in context.scheduled() if context.draft.funcs[name].compute != ROOT]
    name = context.pick_func(inside)
    if name is None:
        return None
    func = context.draft.funcs[name]
    now = next((each.memory for each in func.storage if isinstance(each, StoreIn)), None)
    choices: list[MemoryType | None] = [None, MemoryType.HEAP]
    if func.store is None and context.structure.has_constant_region(name):
        choices += [MemoryType.STACK, MemoryType.REGISTER]
    memory = context.pick([each for each in choices if each is not now])
    kept = tuple(each for each in func.storage if not isinstance(each, StoreIn))
    storage = kept if memory is None else (StoreIn(memory), *kept)
    return context.draft.with_func(name, replace(func, storage=storage))


def reorder_storage(context: MoveContext) -> Draft | None:
    """Store another dimension innermost; or in the order of the arguments again."""
    names = [
        name
        for name in context.scheduled()
        if (shape := context.structure.shape(name)) is not None and len(shape.args) > 1 and not shape.is_output
    ]
    name = context.pick_func(names)
    if name is None:
        return None
    func = context.draft.funcs[name]
    kept = tuple(each for each in func.storage if not isinstance(each, ReorderStorage | AlignStorage))
    if len(kept) < len(func.storage):
        return context.draft.with_func(name, replace(func, storage=kept))
    loops = [loop.identifier for loop in context.structure.loops(Site(name, 0))]
    first = context.pick(loops[1:])
    return None if first is None else context.draft.with_func(name, stored_along(context.structure, name, first))


def align_storage(context: MoveContext) -> Draft | None:
    """Begin every row at a multiple of a vector; or no longer."""
    names = [
        name for name in context.scheduled() if (s := context.structure.shape(name)) is not None and not s.is_output
    ]
    name = context.pick_func(names)
    if name is None:
        return None
    func = context.draft.funcs[name]
    kept = tuple(each for each in func.storage if not isinstance(each, AlignStorage))
    if len(kept) < len(func.storage):
        return context.draft.with_func(name, replace(func, storage=kept))
    loops = context.structure.loops(Site(name, 0))
    if not loops:
        return None
    order = next((each.variables for each in kept if isinstance(each, ReorderStorage)), None)
    inner = loops[0].identifier if order is None else order[0]
    multiple = context.source.choice((16, 32, 64))
    return context.draft.with_func(name, replace(func, storage=(*kept, AlignStorage(inner, multiple))))


def copy_for_one(context: MoveContext) -> Draft | None:
    """Compute a Func of several consumers once more for one of them, inlined or at a loop of it."""
    shared = []
    for name in context.draft.funcs:
        shape, func = context.structure.shape(name), context.draft.funcs[name]
        if shape is None or shape.is_output or shape.is_extern or func.origin is not None or not func.stages:
            continue
        callers = {
            site.func
            for site, called in context.structure.reads.items()
            if name in called and not _is_frozen(context, site.func)
        }
        if len(callers) > 1 and name not in context.draft.replacements:
            shared += [(name, caller) for caller in sorted(callers) if context.may_change(caller)]
    chosen = context.pick(shared)
    if chosen is None:
        return None
    name, consumer = chosen
    return _with_copy(context, name, Clone(name, (consumer,)), f"{name}_for_{consumer}")


def wrap(context: MoveContext) -> Draft | None:
    """Load what a Func reads into a buffer of its own first, at a loop of its consumer: `in()`."""
    places = [
        (name, site.func)
        for site, called in context.structure.reads.items()
        if context.may_change(site.func)
        and not (_is_frozen(context, site.func) or context.structure.is_inlined(site.func))
        for name, read in called.items()
        if (shape := context.structure.names.shapes.get(name)) is not None
        and not (shape.is_extern or name in context.draft.replacements)
        and read.places >= 1
    ]
    chosen = context.pick(places)
    if chosen is None:
        return None
    name, consumer = chosen
    if context.structure.is_inlined(name) and len(context.draft.funcs[name].stages) > 1:
        return None
    return _with_copy(context, name, Wrapper(name, (consumer,)), f"{name}_in_{consumer}")


def drop_copy(context: MoveContext) -> Draft | None:
    """Without a wrapper or a clone."""
    copies = [
        each
        for each, func in context.draft.funcs.items()
        if context.may_change(each) and isinstance(func.origin, Wrapper | Clone) and not func.is_factored
    ]
    name = context.pick(copies)
    return None if name is None else context.draft.without_func(name)


def _with_copy(context: MoveContext, name: str, origin: Wrapper | Clone, called: str) -> Draft | None:
    names = context.structure.names
    copy = make_identifier(called, set(context.draft.funcs) | set(names.original))
    count = 1 if isinstance(origin, Wrapper) else len(context.draft.funcs[name].stages)
    stages = tuple(
        StageDraft((), tuple(loop.identifier for loop in names.loops(name, index))) for index in range(count)
    )
    draft = context.draft.with_func(copy, FuncDraft(None, stages, origin=origin))
    structure = DraftStructure(draft, names)
    levels = structure.levels(copy)
    level = context.pick(levels[:-1] or levels)
    is_inlined = isinstance(origin, Clone) and count == 1 and context.source.random() < 0.4
    if is_inlined or level is None:
        return draft if isinstance(origin, Clone) else None
    return with_own_loops(structure, copy, level, context)


def _is_frozen(context: MoveContext, name: str) -> bool:
    return name not in context.draft.funcs or bool(context.draft.funcs[name].frozen)
