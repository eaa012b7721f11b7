"""Makes a changed draft consistent again: what is computed at a loop that is gone, or no longer around its uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

from halide_autotune.autotune_loop.draft.edit import with_loops_of
from halide_autotune.autotune_loop.draft.factors import is_within_output
from halide_autotune.autotune_loop.draft.model import AS_IS, Draft, FuncDraft, LoopKind, StageDraft, Transform
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.directives import Atomic, ComputeWith, Prefetch, Split, StoreIn
from halide_autotune.autotune_loop.schedule.model import Clone, Wrapper
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel, MemoryType, TailStrategy

_PASSES = 4


def repair(draft: Draft, names: PipelineNames) -> Draft:
    """The nearest draft that Halide may take. Frozen Funcs, and what is computed in their loops, stay as they are."""
    return repaired_child(draft, names, ()).draft


def repaired_child(draft: Draft, names: PipelineNames, taken: Sequence[DraftStructure]) -> DraftStructure:
    """The same of a draft that was made of others; with what follows from it.

    Args:
        taken: drafts that Halide has taken: what they have in equal loops is right.
    """
    structure = DraftStructure(_without_idle_wrappers(draft, names), names)
    order = _consumers_first(structure)
    for _ in range(_PASSES):
        before = structure.draft
        for name in order:
            func = structure.draft.funcs[name]
            repaired = func if func.frozen else _repaired(structure, name, func, taken)
            if repaired != func:
                structure = _with_func(structure, name, repaired)
        if structure.draft is before:
            break
    return structure


def _consumers_first(structure: DraftStructure) -> list[str]:
    callers: dict[str, set[str]] = {}
    for site, called in structure.reads.items():
        for name in called:
            callers.setdefault(name, set()).add(site.func)
    others = {name: callers.get(name, set()) - {name} for name in structure.draft.funcs}
    ranks: dict[str, int] = {}
    for name in TopologicalSorter(others).static_order():
        ranks[name] = 1 + max((ranks[caller] for caller in others.get(name, ())), default=0)
    return sorted(structure.draft.funcs, key=lambda name: ranks[name])


def _without_idle_wrappers(draft: Draft, names: PipelineNames) -> Draft:
    """Without wrappers and clones that nobody calls: Halide refuses them."""
    while True:
        structure = DraftStructure(draft, names)
        called = {name for of_stage in structure.reads.values() for name in of_stage}
        idle = [
            name
            for name, func in draft.funcs.items()
            if isinstance(func.origin, Wrapper | Clone)
            and not func.is_factored
            and (name not in called or not _is_called_by_all(structure, name, func.origin))
        ]
        if not idle:
            return draft
        draft = draft.without_func(idle[0])


def _is_called_by_all(structure: DraftStructure, name: str, origin: Wrapper | Clone) -> bool:
    # Of a Func that is taken apart, the parts are what calls others.
    users = {
        site.func
        for site, called in structure.reads.items()
        if name in called and not structure.draft.funcs[site.func].factoring
    }
    return all(consumer in users for consumer in origin.consumers)


def _repaired(structure: DraftStructure, name: str, func: FuncDraft, taken: Sequence[DraftStructure]) -> FuncDraft:
    shape = structure.shape(name)
    stages = tuple(_stage(structure, Site(name, index), stage, taken) for index, stage in enumerate(func.stages))
    func = replace(func, stages=stages)
    if shape is None:
        return func
    if shape.is_output:
        return replace(func, compute=ROOT, store=None)
    if not structure.users.get(name):
        return replace(func, compute=None, store=None)
    if func.compute is None:
        return replace(func, compute=ROOT if shape.is_extern else None, store=None)
    levels = structure.around_all_uses(name)
    if func.compute not in levels and not _is_in_frozen(structure.draft, func.compute):
        func = replace(func, compute=_nearest(structure, name, func.compute, taken))
    if func.store is not None and not any(_is_in_frozen(structure.draft, level) for level in func.levels()):
        is_moved = func.compute != structure.draft.funcs[name].compute
        at_its_place = _with_func(structure, name, func) if is_moved else structure
        if func.store not in at_its_place.stores(name):
            func = replace(func, store=None)
    return _without_registers(structure, name, func, taken)


def _nearest(structure: DraftStructure, name: str, gone: LoopLevel, taken: Sequence[DraftStructure]) -> LoopLevel:
    """Where to compute a Func whose loop is gone: in another loop of the same Func, or in one that was around it."""
    levels = structure.levels(name)
    before = [
        level
        for parent in taken
        if name in parent.draft.funcs and parent.draft.funcs[name].compute == gone
        for level in parent.outside(name)
    ]
    same = [level for level in levels if level.func == gone.func]
    return next((level for level in (*same, *before) if level in levels), ROOT)


def _without_registers(
    structure: DraftStructure, name: str, func: FuncDraft, taken: Sequence[DraftStructure]
) -> FuncDraft:
    """The Func, stored where Halide likes if its size is not known when it is compiled: there are no such registers."""
    registers = StoreIn(MemoryType.REGISTER)
    if registers not in func.storage or (func.store is None and structure.has_constant_region(name)):
        return func
    proven = any(
        name in parent.draft.funcs
        and registers in parent.draft.funcs[name].storage
        and _what_needs(parent, name) == _what_needs(structure, name)
        for parent in taken
    )
    return func if proven else replace(func, storage=tuple(each for each in func.storage if each != registers))


def _with_func(structure: DraftStructure, name: str, func: FuncDraft) -> DraftStructure:
    return DraftStructure(structure.draft.with_func(name, func), structure.names)


def _what_needs(structure: DraftStructure, name: str) -> object:
    """What decides how much of a Func is computed at once: its place, and the loops that are around it and its uses.

    How much a reader computes at once is decided so, too, as far as it is not all of it.
    """
    sites = structure.users.get(name, ())
    needing: dict[str, None] = {}
    todo = [name]
    while todo:
        of = todo.pop()
        if of in needing:
            continue
        needing[of] = None
        if of == name or structure.draft.funcs[of].compute != ROOT:
            todo += [site.func for site in structure.users.get(of, ())]
            todo += [level.func or of for level in structure.outside(of)]

    def loops(of: str) -> object:
        func = structure.draft.funcs[of]
        return func.compute, of != name and [(stage.transforms, stage.order) for stage in func.stages]

    return sites, {of: loops(of) for of in needing}


def _is_in_frozen(draft: Draft, level: LoopLevel) -> bool:
    func = draft.funcs.get(level.func or "")
    return func is not None and bool(func.frozen) and (level.variable or "").endswith(AS_IS)


def _alike(structure: DraftStructure, site: Site, taken: Sequence[DraftStructure]) -> list[StageDraft]:
    """The stage as it is in those of the drafts where as much of it is computed at once."""
    of_funcs = [
        parent.draft.funcs[site.func].stages
        for parent in taken
        if site.func in parent.draft.funcs and _what_needs(parent, site.func) == _what_needs(structure, site.func)
    ]
    return [stages[site.stage] for stages in of_funcs if site.stage < len(stages)]


def _guarded(structure: DraftStructure, site: Site, stage: StageDraft, taken: Sequence[DraftStructure]) -> StageDraft:
    """The stage, doing no more than is needed where an update at the root would do whole steps of a split, or an output
    would be written before it begins.

    Halide rounds up where it is not told otherwise; what is rounded up at the root asks for larger inputs and outputs.
    """
    if structure.draft.funcs[site.func].compute != ROOT:
        return stage
    splits = [made for made in stage.transforms if isinstance(made, Split)]
    if site.stage > 0:
        untold = [made for made in splits if made.tail is TailStrategy.AUTO]
    else:
        untold = [
            made
            for made in splits
            if made.tail in (TailStrategy.AUTO, TailStrategy.SHIFT_INWARDS)
            and isinstance(made.factor, int)
            and not is_within_output(structure, site, made.old, made.factor)
        ]
    if not untold:
        return stage
    original = structure.names.original
    right = {made for alike in _alike(structure, site, taken) for made in alike.transforms}

    def guarded(made: Transform) -> Transform:
        if made not in untold or made in right:
            return made
        is_reduction = any(root in original and original[root].is_reduction for root in stage.root_of(made.old))
        return made if is_reduction else replace(made, tail=TailStrategy.GUARD_WITH_IF)

    return replace(stage, transforms=tuple(map(guarded, stage.transforms)))


def _stage(structure: DraftStructure, site: Site, stage: StageDraft, taken: Sequence[DraftStructure]) -> StageDraft:
    stage = _guarded(structure, site, stage, taken)
    has_vectors = structure.may_have_vectors(site.func)
    kinds = {
        loop: stage.kinds[loop]
        for loop in stage.order
        if loop in stage.kinds and (has_vectors or stage.kinds[loop] is not LoopKind.VECTORIZED)
    }
    serial = [loop for loop, kind in kinds.items() if kind is not LoopKind.PARALLEL]
    unsure = [loop for loop in serial if not structure.is_constant(site, loop)]
    if unsure:
        proven = [each.kinds for each in _alike(structure, site, taken) if each.transforms == stage.transforms]
        for loop in unsure:
            if not any(each.get(loop) is kinds[loop] for each in proven):
                del kinds[loop]
    also = tuple(
        each
        for each in stage.also
        if not (isinstance(each, ComputeWith) and not _may_go_with(structure, site, each))
        and not (isinstance(each, Prefetch) and not _may_be_fetched(structure.draft, stage, each))
    )
    if any(isinstance(each, Atomic) for each in also):
        # Once is enough: parents may both have had it.
        atomic = [each for each in also if isinstance(each, Atomic)][:1]
        also = (*(each for each in also if not isinstance(each, Atomic)), *atomic)
    return replace(stage, kinds=kinds, also=also)


def _may_be_fetched(draft: Draft, stage: StageDraft, directive: Prefetch) -> bool:
    """Whether the loop is there, and what is fetched is in memory."""
    source = draft.funcs.get(directive.source.identifier)
    is_input = any(each.identifier == directive.source.identifier for each in draft.parameters)
    return directive.at in stage.order and (is_input if source is None else not source.is_inlined)


def _may_go_with(structure: DraftStructure, site: Site, directive: ComputeWith) -> bool:
    other = structure.draft.funcs.get(directive.stage.func)
    func = structure.draft.funcs[site.func]
    if other is None or other.compute != func.compute or other.store != func.store or other.is_inlined:
        return False
    index = 0 if directive.stage.update is None else directive.stage.update + 1
    if index >= len(other.stages):
        return False
    shared = [_outer_loops(stage, directive.variable) for stage in (func.stages[site.stage], other.stages[index])]
    if not shared[0] or shared[0] != shared[1]:
        return False
    # Two were asked whether they may; others may have come to them since.
    group = with_loops_of(structure.draft, site.func)
    needs = (structure.depends(one, another) for one in group for another in group if one != another)
    return len(group) == 2 or not any(needs)


def _outer_loops(stage: StageDraft, loop: str) -> list[tuple[str, LoopKind | None]]:
    """A loop and those around it, with their kinds: Halide makes one of them only where they are alike."""
    return [(each, stage.kind(each)) for each in stage.order[stage.order.index(loop) :]] if loop in stage.order else []
