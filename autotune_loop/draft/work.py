"""How much a draft computes, as far as its pipeline's shape tells."""

from __future__ import annotations

import math

from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel

_MOST_OPERATIONS = 10**9


def work_of(structure: DraftStructure) -> dict[str, float]:
    """How many operations each Func with loops does, what is computed again included: an estimate."""
    inlined: dict[str, int] = {}
    total: dict[str, float] = {}
    for name, func in structure.draft.funcs.items():
        if structure.shape(name) is None or structure.is_inlined(name) or not func.stages:
            continue
        outside, share = structure.outside(name), 1.0
        if func.store is not None and (func.store == ROOT or func.store in outside):
            # A sliding window: each point is computed once within the loop where it is stored.
            outside = () if func.store == ROOT else outside[outside.index(func.store) :]
            share = math.prod(structure.region_at(name, func.store)) / math.prod(structure.region(name))
        repeated = math.prod(iterations(structure, level) for level in outside)
        total[name] = 0.0
        for index, stage in enumerate(func.stages):
            site = Site(name, index)
            extents = structure.loop_extents(site)
            points = math.prod(extents[loop] for loop in stage.order)
            total[name] += repeated * share * points * _operations(structure, site, inlined)
    return total


def iterations(structure: DraftStructure, level: LoopLevel) -> int:
    """Of a loop: an estimate."""
    func = structure.draft.funcs.get(level.func or "")
    for index, stage in enumerate(() if func is None else func.stages):
        if level.variable in stage.order:
            return structure.loop_extents(Site(level.func or "", index))[level.variable]
    return 1


def _operations(structure: DraftStructure, site: Site, inlined: dict[str, int]) -> int:
    """Of one point, with what is inlined into it; `inlined` has what is known of inlined Funcs."""
    shape = structure.shape(site.func)
    operations = 1 if shape is None else shape.stages[site.stage].operations + 1
    for name, read in structure.reads[site].items():
        if not structure.is_inlined(name):
            continue
        if name not in inlined:
            inlined[name] = min(_MOST_OPERATIONS, _operations(structure, Site(name, 0), inlined))
        operations += read.places * inlined[name]
    return operations
