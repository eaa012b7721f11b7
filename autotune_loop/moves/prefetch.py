"""A move that changes what is fetched ahead of its use."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.draft.edit import with_stage
from halide_autotune.autotune_loop.draft.model import Draft, StageDraft
from halide_autotune.autotune_loop.draft.structure import Site
from halide_autotune.autotune_loop.moves.move import MoveContext
from halide_autotune.autotune_loop.schedule.directives import Directive, Prefetch
from halide_autotune.autotune_loop.schedule.values import ROOT, Source

# Iterations of the loop.
_DISTANCES = (1, 2, 4, 8, 16)
_DROPPED = 0.3


def change_prefetch(context: MoveContext) -> Draft | None:
    """Fetch what a stage reads of a Func at the root some iterations ahead, further ahead, or no longer."""
    site = context.pick_site()
    if site is None:
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    now = context.pick([each for each in stage.also if isinstance(each, Prefetch)])
    also = _with_new(context, site, stage) if now is None else _with_other(context, stage, now)
    return None if also is None else with_stage(context.draft, site.func, site.stage, replace(stage, also=also))


def _with_other(context: MoveContext, stage: StageDraft, now: Prefetch) -> tuple[Directive, ...]:
    """Another distance, or none."""
    others = tuple(each for each in stage.also if each != now)
    if context.source.random() < _DROPPED:
        return others
    distance = context.source.choice([each for each in _DISTANCES if each != now.offset])
    return (*others, replace(now, offset=distance))


def _with_new(context: MoveContext, site: Site, stage: StageDraft) -> tuple[Directive, ...] | None:
    read = context.pick([name for name in context.structure.reads[site] if context.draft.funcs[name].compute == ROOT])
    loop = context.pick([each for each in stage.order[1:] if stage.kind(each) is None])
    if read is None or loop is None:
        return None
    return (*stage.also, Prefetch(Source(read), loop, loop, context.source.choice(_DISTANCES)))
