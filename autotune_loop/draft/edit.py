"""Changes of one stage's loops, and of what names them elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from halide_autotune.autotune_loop.draft.model import (
    Draft,
    FuncDraft,
    LoopKind,
    StageDraft,
    Transform,
    made_by,
    used_by,
)
from halide_autotune.autotune_loop.schedule.check import make_identifier
from halide_autotune.autotune_loop.schedule.directives import (
    ComputeWith,
    Directive,
    Fuse,
    PartitionLoop,
    Prefetch,
    Split,
)
from halide_autotune.autotune_loop.schedule.values import LoopLevel, Number, TailStrategy


def split(
    stage: StageDraft, loop: str, factor: Number, tail: TailStrategy = TailStrategy.AUTO
) -> tuple[StageDraft, str, str]:
    """Split a loop, which must be one of the stage's; returns the stage, the outer and the inner loop.

    The two take the loop's place, and the outer one its kind.
    """
    outer, inner = new_loop(stage, f"{loop}o"), new_loop(stage, f"{loop}i")
    place = stage.order.index(loop)
    order = (*stage.order[:place], inner, outer, *stage.order[place + 1 :])
    kinds = {outer if name == loop else name: kind for name, kind in stage.kinds.items()}
    transforms = (*stage.transforms, Split(loop, outer, inner, factor, tail))
    return replace(stage, transforms=transforms, order=order, kinds=kinds), outer, inner


def fuse(stage: StageDraft, inner: str, outer: str) -> tuple[StageDraft, str]:
    """Fuse two loops into one in the place of the inner one; returns the stage and the loop."""
    fused = new_loop(stage, f"{inner}_{outer}")
    order = tuple(fused if name == inner else name for name in stage.order if name != outer)
    kinds = {name: kind for name, kind in stage.kinds.items() if name not in (inner, outer)}
    return replace(stage, transforms=(*stage.transforms, Fuse(inner, outer, fused)), order=order, kinds=kinds), fused


def undo(stage: StageDraft, transform: Transform) -> tuple[StageDraft, dict[str, str]] | None:
    """Take a split or fusion back; returns the stage and what its loops are called now.

    None if something was made of its loops since.
    """
    others = tuple(each for each in stage.transforms if each != transform)
    used = {name for each in others for name in used_by(each)}
    if isinstance(transform, Split):
        gone = {transform.outer: transform.old, transform.inner: transform.old}
        kept = transform.old
        order = tuple(kept if name == transform.outer else name for name in stage.order if name != transform.inner)
    else:
        gone = {transform.fused: transform.outer}
        place = stage.order.index(transform.fused) if transform.fused in stage.order else 0
        order = (*stage.order[:place], transform.inner, transform.outer, *stage.order[place + 1 :])
    if not used.isdisjoint(gone) or not set(gone) <= set(stage.order):
        return None
    kinds = {}
    for name, kind in stage.kinds.items():
        if name not in gone:
            kinds[name] = kind
        elif isinstance(transform, Split) and name == transform.outer:
            kinds[transform.old] = kind
    return replace(stage, transforms=others, order=order, kinds=kinds), gone


def with_factor(stage: StageDraft, made: Split, factor: Number) -> StageDraft:
    """The stage with another factor of a split."""
    return replace(
        stage, transforms=tuple(replace(each, factor=factor) if each == made else each for each in stage.transforms)
    )


def reorder(stage: StageDraft, order: Sequence[str]) -> StageDraft:
    """The stage with its loops in another order, the innermost first."""
    assert sorted(order) == sorted(stage.order), "the same loops"
    return replace(stage, order=tuple(order))


def move_to(stage: StageDraft, loop: str, place: int) -> StageDraft:
    """The stage with a loop in another place, counted from the inside."""
    others = [name for name in stage.order if name != loop]
    others.insert(place, loop)
    return reorder(stage, others)


def with_stage(draft: Draft, name: str, index: int, stage: StageDraft, gone: Mapping[str, str] | None = None) -> Draft:
    """The draft with another stage; `gone` are loops that others may name → what they are called now."""
    changed = draft.with_func(name, draft.funcs[name].with_stage(index, _also_kept(stage)))
    return redirect(changed, name, gone) if gone else changed


def redirect(draft: Draft, name: str, loops: Mapping[str, str]) -> Draft:
    """The draft in which what is at a loop of a Func is at another."""

    def new(level: LoopLevel | None) -> LoopLevel | None:
        if level is None or level.func != name or level.variable is None:
            return level
        return LoopLevel(name, loops.get(level.variable, level.variable))

    def changed(func: FuncDraft) -> FuncDraft:
        return replace(func, compute=new(func.compute), store=new(func.store))

    return replace(draft, funcs={each: changed(func) for each, func in draft.funcs.items()})


def with_loops_of(draft: Draft, name: str) -> set[str]:
    """The Func and those that have loops in common with it by `compute_with`, directly or through others."""
    pairs = [
        {func, each.stage.func}
        for func, of in draft.funcs.items()
        for stage in of.stages
        for each in stage.also
        if isinstance(each, ComputeWith)
    ]
    found = {name}
    while more := set().union(*(pair for pair in pairs if pair & found)) - found:
        found |= more
    return found


def new_loop(stage: StageDraft, name: str) -> str:
    """A name that no loop of the stage has or had, and no word of C++ or Python: the outer loop of d is not `do`."""
    taken = {*stage.order, *(each for made in stage.transforms for each in (*used_by(made), *made_by(made)))}
    return make_identifier(name, taken)


def _also_kept(stage: StageDraft) -> StageDraft:
    """The stage without directives for loops that are gone."""
    loops = set(stage.order)

    def is_kept(directive: Directive) -> bool:
        match directive:
            case PartitionLoop(variable):
                return variable in loops
            case Prefetch(_, at, base):
                return at in loops and base in loops
            case ComputeWith(_, _, alignments):
                return all(variable in loops for variable, _ in alignments)
        return True

    also = tuple(filter(is_kept, stage.also))
    return stage if len(also) == len(stage.also) else replace(stage, also=also)


def loops_of_kind(stage: StageDraft, *kinds: LoopKind) -> tuple[str, ...]:
    """The loops of these kinds, the innermost first."""
    return tuple(loop for loop in stage.order if stage.kinds.get(loop) in kinds)
