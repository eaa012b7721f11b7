"""What a schedule is like, as numbers for each Func: where it is computed, how much at once, and how its loops run.

Sizes are logarithms to base 2: what doubles a tile is one step, wherever it starts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from halide_autotune.autotune_loop.draft.model import FuncDraft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.partitioning import whole_loops
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.draft.work import iterations, work_of
from halide_autotune.autotune_loop.schedule.directives import Parallel, Split, StoreIn, Unroll, Vectorize
from halide_autotune.autotune_loop.schedule.values import ROOT

_FACTORS, _DIMENSIONS, _LOOPS = 4, 4, 6
_KINDS = {LoopKind.PARALLEL: -1.0, None: 0.0, LoopKind.UNROLLED: 1.0, LoopKind.VECTORIZED: 2.0}
_ABSENT, _INLINED, _AS_IS, _WITH_LOOPS = range(4)
# What each number of a Func is; those after the first are 0 where they make no sense.
FEATURE_NAMES = (
    "how it is scheduled",
    *(f"factor {place} as is" for place in range(_FACTORS)),
    *("vectors as is", "unrolled as is", "tasks as is"),
    *("at root", "in a task", "times computed", "work", "points", "points stored"),
    *(f"extent {place}" for place in range(_DIMENSIONS)),
    *("stage", *(kind.value for kind in LoopKind)),
    *(f"{what} of loop {place}" for place in range(_LOOPS) for what in ("extent", "kind", "dimension")),
    *("storage directives", "memory is chosen", "other directives", "loops in one part"),
)
_OF_AS_IS = _FACTORS + 3
# Of a Func that a schedule does not have, such as a wrapper.
ABSENT = (float(_ABSENT), *[0.0] * (len(FEATURE_NAMES) - 1))


def features_of(structure: DraftStructure) -> dict[str, tuple[float, ...]]:
    """Each Func's numbers; `FEATURE_NAMES` says what they are."""
    work = work_of(structure)
    return {name: _features(structure, name, work.get(name, 0.0)) for name in structure.draft.funcs}


def _features(structure: DraftStructure, name: str, work: float) -> tuple[float, ...]:
    func = structure.draft.funcs[name]
    if structure.shape(name) is None or not func.stages:
        found = [_AS_IS, *_as_is(func)]
    elif structure.is_inlined(name):
        found = [_INLINED]
    else:
        found = [_WITH_LOOPS, *[0.0] * _OF_AS_IS, *_sizes(structure, name, work), *_loops(structure, name)]
        found += [len(func.storage), any(isinstance(each, StoreIn) for each in func.storage)]
        found += [sum(len(stage.also) for stage in func.stages) + len(func.cases)]
        found += [sum(len(whole_loops(stage)) for stage in func.stages)]
    return (*map(float, found), *[0.0] * (len(FEATURE_NAMES) - len(found)))


def _as_is(func: FuncDraft) -> list[float]:
    """Of directives that a draft does not take apart: how large the splits are, and what else there is."""
    directives = [each for stage in func.frozen for each in stage.directives]
    factors = [_log(each.factor) for each in directives if isinstance(each, Split) and isinstance(each.factor, int)]
    return [
        *[*factors, *[0.0] * _FACTORS][:_FACTORS],
        *(sum(isinstance(each, kind) for each in directives) for kind in (Vectorize, Unroll, Parallel)),
    ]


def _sizes(structure: DraftStructure, name: str, work: float) -> list[float]:
    """Where a Func is computed, how often, and how much of it at once."""
    func, outside = structure.draft.funcs[name], structure.outside(name)
    region = structure.region(name)
    stored = region if func.store is None else structure.region_at(name, func.store)
    extents = [_log(extent) for extent in region[:_DIMENSIONS]]
    return [
        func.compute == ROOT,
        any(structure.kind(level) is LoopKind.PARALLEL for level in outside),
        _log(math.prod(iterations(structure, level) for level in outside)),
        *(_log(work), _log(math.prod(region)), _log(math.prod(stored))),
        *(extents + [0.0] * (_DIMENSIONS - len(extents))),
    ]


def _loops(structure: DraftStructure, name: str) -> list[float]:
    """How the loops of the stage with the most to do run; the innermost come first."""
    index = max(range(len(structure.draft.funcs[name].stages)), key=lambda each: _operations(structure, name, each))
    stage, extents = structure.draft.funcs[name].stages[index], structure.loop_extents(Site(name, index))
    dimensions = _dimensions(structure, name, index)
    loops = [
        number
        for loop in stage.order[:_LOOPS]
        for number in (_log(extents[loop]), _KINDS[stage.kind(loop)], dimensions.get(stage.root_of(loop)[0], -1))
    ]
    of_kind = [_of_kind(stage, extents, kind) for kind in LoopKind]
    return [index, *of_kind, *loops, *[0.0] * (3 * _LOOPS - len(loops))]


def _operations(structure: DraftStructure, name: str, index: int) -> int:
    extents, shape = structure.loop_extents(Site(name, index)), structure.shape(name)
    assert shape is not None, "a Func with loops has a shape"
    loops = structure.draft.funcs[name].stages[index].order
    return math.prod(extents[loop] for loop in loops) * (shape.stages[index].operations + 1)


def _of_kind(stage: StageDraft, extents: Mapping[str, int], kind: LoopKind) -> float:
    return _log(math.prod(extents[loop] for loop in stage.order if stage.kind(loop) is kind))


def _dimensions(structure: DraftStructure, name: str, index: int) -> dict[str, int]:
    """A stage's loops before any scheduling → their places."""
    return {loop.identifier: place for place, loop in enumerate(structure.loops(Site(name, index)))}


def _log(number: float) -> float:
    return math.log2(max(1.0, number))
