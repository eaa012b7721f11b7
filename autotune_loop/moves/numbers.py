"""Moves that change numbers: the factors of splits, what a split does at its edge."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.draft.edit import with_factor, with_stage
from halide_autotune.autotune_loop.draft.factors import factors_of, is_within_output, largest_factor
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.structure import Site
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.schedule.directives import Split
from halide_autotune.autotune_loop.schedule.values import TailStrategy

_FACTORS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 512)
_TAILS = (TailStrategy.AUTO, TailStrategy.GUARD_WITH_IF, TailStrategy.ROUND_UP, TailStrategy.SHIFT_INWARDS)


def change_factor(context: MoveContext) -> Draft | None:
    """Another factor for a split: mostly the double or the half, else any that fits."""
    found = _pick_split(context)
    if found is None:
        return None
    site, made = found
    stage = context.draft.funcs[site.func].stages[site.stage]
    extent, largest = context.structure.loop_extents(site)[made.old], largest_factor(context.structure, site, made)
    assert isinstance(made.factor, int)
    near = [made.factor * 2, made.factor // 2]
    is_vector = stage.kind(made.inner) is LoopKind.VECTORIZED
    choices = near if context.source.random() < 0.5 or is_vector else [*_FACTORS, extent]
    factor = context.pick([each for each in choices if 1 < each <= largest and each != made.factor])
    return (
        None if factor is None else with_stage(context.draft, site.func, site.stage, with_factor(stage, made, factor))
    )


def change_all_factors(context: MoveContext) -> Draft | None:
    """The same change of every split of one factor in a Func: the definition and its updates go together."""
    found = pick_doubling(context)
    if found is None:
        return None
    site, made, factor = found
    draft = context.draft
    for index, stage in enumerate(draft.funcs[site.func].stages):
        for each in stage.transforms:
            if isinstance(each, Split) and each.factor == made.factor and each.old == made.old:
                if not is_within_output(context.structure, Site(site.func, index), each.old, factor):
                    return None
                draft = with_stage(draft, site.func, index, with_factor(stage, each, factor))
    return draft


def change_tail(context: MoveContext) -> Draft | None:
    """Another way to treat the edge.

    Rounding up an output would demand sizes of its callers; rounding up a reduction would change what it computes.
    """
    found = _pick_split(context)
    if found is None:
        return None
    site, made = found
    shape = context.structure.shape(site.func)
    assert shape is not None
    refused = {made.tail}
    stage = context.draft.funcs[site.func].stages[site.stage]
    original = context.structure.names.original
    is_reduction = any(original[root].is_reduction for root in stage.root_of(made.old))
    if shape.is_output or is_reduction:
        refused.add(TailStrategy.ROUND_UP)
    if site.stage > 0:
        refused.add(TailStrategy.SHIFT_INWARDS)
    tail = context.pick([each for each in _TAILS if each not in refused])
    if tail is None:
        return None
    transforms = tuple(replace(made, tail=tail) if each == made else each for each in stage.transforms)
    return with_stage(context.draft, site.func, site.stage, replace(stage, transforms=transforms))


def pick_doubling(context: MoveContext) -> tuple[Site, Split, int] | None:
    """A split by a number, and the double or the half of that; None where there is none."""
    found = _pick_split(context)
    if found is None:
        return None
    site, made = found
    assert isinstance(made.factor, int)
    factor = context.pick([each for each in (made.factor * 2, made.factor // 2) if each > 1])
    return None if factor is None else (site, made, factor)


def _pick_split(context: MoveContext) -> tuple[Site, Split] | None:
    """A split by a number; None where there is none."""
    splits: dict[str, list[tuple[Site, Split]]] = {}
    scheduled = {*context.scheduled()}
    for place in factors_of(context.draft):
        if place.site.func in scheduled:
            splits.setdefault(place.site.func, []).append((place.site, place.split_in(context.draft)))
    chosen = context.pick_func([*splits])
    return None if chosen is None else context.pick(splits[chosen])
