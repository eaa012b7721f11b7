"""Where a Func is computed and stored, given its readers' loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from halide_autotune.autotune_loop.draft.model import LoopKind
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.directives import Split
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from halide_autotune.autotune_loop.sketches.inlined import LARGE_BYTES, bytes_of, hosts_scan, is_scan
from halide_autotune.autotune_loop.sketches.roles import WORTH_TASKS, roles_of, work_of
from halide_autotune.autotune_loop.sketches.style import Fusion, Style
from halide_autotune.targets.pipeline.shape import StageShape

# Computed no more than once, but for the edges.
_ONCE = 1.05
# What a core's second cache holds.
_CACHE_BYTES = 2**19
# Of fewer rows of memory, or for fewer points, no copy is worth its while.
_MANY_ROWS, _MANY_TIMES = 64, 256
# Where fewer iterations than one in so many need something new, no window slides.
_SELDOM = 3
# A row of fewer vectors is not worth a loop of its own.
_VECTORS = 4


def place_of(structure: DraftStructure, name: str, style: Style, lanes: int) -> tuple[LoopLevel, LoopLevel | None]:
    """Where a Func is computed, and where it is stored if that is further out."""
    if hosts_scan(structure, name):
        return _around_tasks(structure, name), None
    levels = [
        level
        for level in _within_tasks(structure, name)
        if structure.kind(level) is not LoopKind.UNROLLED
        and not (style.pairs and _is_of_pairs(structure, level))
        and _fills_vectors(structure, name, level, lanes, 1)
    ]
    once = _ONCE * max(_readers_repeated(structure, site.func) for site in structure.users[name])
    is_sum = len(structure.draft.funcs[name].stages) > 1
    if style.fusion is not Fusion.ROOT or is_sum:
        for level in levels:
            if _repeated(structure, name, level) <= once and _fits(structure, name, level, style):
                return level, None
            if style.fusion is not Fusion.ROWS or is_sum:
                continue
            store = _first_store(structure, name, level)
            if store is not None and _slides(structure, name, level, store, lanes, style.redundancy):
                is_at_once = _is_seldom_new(structure, name, level, store) and _fits(structure, name, store, style)
                return (store, None) if is_at_once else (level, store)
    if style.fusion is Fusion.ROOT:
        return _around_tasks(structure, name), None
    repeated = {level: _repeated(structure, name, level) for level in levels if _fits(structure, name, level, style)}
    allowed = [level for level, times in repeated.items() if times <= style.redundancy]
    if not allowed:
        return _around_tasks(structure, name), None
    # Further in, all that is computed twice is so for each of its readers' tiles, and what it reads again.
    return (allowed[0] if style.fusion is Fusion.ROWS else min(allowed, key=repeated.__getitem__)), None


def is_around_tasks(structure: DraftStructure, name: str, level: LoopLevel) -> bool:
    """Whether tasks are in this loop, and not this loop in a task: what is computed here has tasks of its own."""
    within, around = _levels_by_tasks(structure, name)
    return bool(within) and level in around


def packed_at(structure: DraftStructure, name: str) -> LoopLevel | None:
    """The loop of tasks, if each of them reads short pieces of many rows of memory for its sums, many times over."""
    levels = _within_tasks(structure, name)
    readers = [structure.shape(site.func) for site in structure.users[name]]
    sums = [reader for reader in readers if reader is not None and len(reader.stages) > 1]
    times = max((sum_.points // (sum_.extents[0] or 1) for sum_ in sums), default=0)
    if not levels or len(sums) != len(readers) or times < _MANY_TIMES:
        return None
    needed, whole = structure.region_at(name, levels[-1]), structure.region_at(name, ROOT)
    shape = structure.shape(name)
    assert shape is not None
    is_scattered = needed[0] < whole[0] and math.prod(needed[1:]) >= _MANY_ROWS
    return levels[-1] if is_scattered and math.prod(needed) * shape.value_bytes <= _CACHE_BYTES else None


def _around_tasks(structure: DraftStructure, name: str) -> LoopLevel:
    """The innermost loop around tasks of which each iteration needs another part of a large Func, as a loop over
    channels does; else the root."""
    shape = structure.shape(name)
    within, around = _levels_by_tasks(structure, name)
    if not within or shape is None or bytes_of(shape) <= LARGE_BYTES:
        return ROOT
    whole = math.prod(structure.region_at(name, ROOT))
    for level in around:
        is_part = 2 * math.prod(structure.region_at(name, level)) <= whole
        if is_part and _repeated(structure, name, level) <= _ONCE:
            return level
    return ROOT


def _within_tasks(structure: DraftStructure, name: str) -> Sequence[LoopLevel]:
    """The loops around all that reads a Func, from the inside to that of the tasks; all, if it is little work."""
    within, around = _levels_by_tasks(structure, name)
    if within:
        return within
    shape = structure.shape(name)
    return around if shape is not None and work_of(shape) < WORTH_TASKS else []


def _levels_by_tasks(structure: DraftStructure, name: str) -> tuple[Sequence[LoopLevel], Sequence[LoopLevel]]:
    """The loops around all that reads a Func, from the inside: up to that of the tasks, and around it; without tasks
    the first are none."""
    levels = [level for level in structure.levels(name) if level != ROOT]
    tasks = [place for place, level in enumerate(levels) if structure.kind(level) is LoopKind.PARALLEL]
    count = tasks[-1] + 1 if tasks else 0
    return levels[:count], levels[count:]


def _first_store(structure: DraftStructure, name: str, level: LoopLevel) -> LoopLevel | None:
    func = replace(structure.draft.funcs[name], compute=level)
    stores = DraftStructure(structure.draft.with_func(name, func), structure.names).stores(name)
    return stores[0] if stores and stores[0] != ROOT else None


def _fills_vectors(structure: DraftStructure, name: str, level: LoopLevel, lanes: int, vectors: int) -> bool:
    """Whether so much of the Func is needed in a loop that vectors of it are full."""
    whole = structure.region_at(name, ROOT)
    roles = roles_of(structure, name, whole, lanes)
    if roles.vector is None:
        return True
    place = [*roles.extents].index(roles.vector)
    return structure.region_at(name, level)[place] >= min(whole[place], roles.lanes * vectors)


def _is_of_pairs(structure: DraftStructure, level: LoopLevel) -> bool:
    """Whether a loop is over the two rows of a pair."""
    return any(
        isinstance(made, Split) and made.inner == level.variable and made.factor == 2
        for stage in structure.draft.funcs[level.func or ""].stages
        for made in stage.transforms
    )


def _slides(
    structure: DraftStructure, name: str, level: LoopLevel, store: LoopLevel, lanes: int, redundancy: float
) -> bool:
    """Whether a window of rows may slide: what a loop needs is all that is stored along the vectors, and enough."""
    roles = roles_of(structure, name, structure.region_at(name, ROOT), lanes)
    if not _fills_vectors(structure, name, level, lanes, _VECTORS):
        return False
    if roles.vector is not None:
        place = [*roles.extents].index(roles.vector)
        if 2 * structure.region_at(name, level)[place] <= structure.region_at(name, store)[place]:
            return False
    return _repeated(structure, name, store) <= redundancy


def _is_seldom_new(structure: DraftStructure, name: str, level: LoopLevel, store: LoopLevel) -> bool:
    """Whether most iterations of a loop need nothing of a Func that is new, as where a picture is enlarged."""
    needed, kept = structure.region_at(name, level), structure.region_at(name, store)
    new = math.prod(of_all for of_one, of_all in zip(needed, kept, strict=True) if of_all > of_one)
    runs = [_times(structure, _outside(structure, name, each)) for each in (level, store)]
    return runs[0] / runs[1] >= _SELDOM * new


def _fits(structure: DraftStructure, name: str, level: LoopLevel, style: Style) -> bool:
    """Whether what is needed in a loop stays in a core's cache; what a scan goes over is needed as a whole."""
    shape = structure.shape(name)
    assert shape is not None
    if style.fusion is Fusion.COLUMNS and is_scan(shape):
        return True  # it fits nowhere, and a strip of it is less than all
    in_all = [arg for arg in shape.args if all(arg in _pure_loops(stage) for stage in shape.stages)]
    needed, whole = structure.region_at(name, level), structure.region_at(name, ROOT)
    sizes = [needed[place] if arg in in_all else whole[place] for place, arg in enumerate(shape.args)]
    return math.prod(sizes) * shape.value_bytes <= _CACHE_BYTES


def _pure_loops(stage: StageShape) -> set[str]:
    return {loop.name for loop in stage.loops if not loop.is_reduction}


def _repeated(structure: DraftStructure, name: str, level: LoopLevel) -> float:
    """How often a point of a Func is computed if all that a loop's iteration needs is computed in it."""
    shape = structure.shape(name)
    assert shape is not None
    needed = dict(zip(shape.args, structure.region_at(name, level), strict=True))
    whole = dict(zip(shape.args, structure.region_at(name, ROOT), strict=True))
    most = 0.0
    for stage in shape.stages:
        loops = _pure_loops(stage)
        most = max(most, math.prod(needed[arg] for arg in loops) / math.prod(whole[arg] for arg in loops))
    return most * _times(structure, _outside(structure, name, level))


def _readers_repeated(structure: DraftStructure, reader: str) -> float:
    """How often a point of a reader is computed: what it reads cannot be computed less often in its loops."""
    func = structure.draft.funcs[reader]
    if func.compute is None or func.compute == ROOT:
        return 1.0
    return _repeated(structure, reader, func.compute if func.store in (None, ROOT) else func.store or ROOT)


def _outside(structure: DraftStructure, name: str, level: LoopLevel) -> Sequence[LoopLevel]:
    for site in structure.users[name]:
        chain = structure.around(site)
        if level in chain:
            return chain[chain.index(level) :]
    return ()


def _times(structure: DraftStructure, levels: Sequence[LoopLevel]) -> float:
    """How often what is inside these loops runs; what splits add at the end of a loop does not count."""
    times = 1.0
    while levels:
        func = levels[0].func or ""
        own = [level for level in levels if level.func == func]
        times *= _times_of(structure, func, {level.variable or "" for level in own})
        levels = levels[len(own) :]
        store = structure.draft.funcs[func].store if func in structure.draft.funcs else None
        if store is not None and store in levels:
            # A window slides: within the loop where it is stored, no point is computed twice.
            computed, needed = math.prod(structure.region_at(func, store)), math.prod(structure.region(func))
            times *= computed / needed
            levels = levels[levels.index(store) :]
    return times


def _times_of(structure: DraftStructure, func: str, outside: set[str]) -> float:
    stages = structure.draft.funcs[func].stages if func in structure.draft.funcs else ()
    index = next((index for index, stage in enumerate(stages) if outside <= {*stage.order}), None)
    if index is None:
        return 1.0
    times = 1.0
    extents = structure.loop_extents(Site(func, index))
    for variable in structure.loops(Site(func, index)):
        leaves = [leaf for leaf in stages[index].order if variable.identifier in stages[index].root_of(leaf)]
        inside = math.prod(extents[leaf] for leaf in leaves if leaf not in outside)
        times *= max(1.0, extents[variable.identifier] / inside)
    return times
