"""Which Funcs need no storage: what is cheap, and what is read once at one point."""

from __future__ import annotations

import math
from collections.abc import Mapping

from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.values import ROOT
from halide_autotune.autotune_loop.sketches.roles import CHANNELS
from halide_autotune.targets.pipeline.shape import FuncShape, ReadShape

# A Func of fewer operations is no more than its reads: an input's name, a cast, a clamp.
TRIVIAL = 6
# A point that is computed hardly more often than it is stored.
_ONCE = 1.3
# What reading where data say costs, in operations.
_LOOKUP = 12
# What no cache of one core holds.
LARGE_BYTES = 2**22


def weights(names: PipelineNames, budget: int, *, in_pairs: bool) -> Mapping[str, int]:
    """How many operations a point of each Func is, with what is likely inlined into it; reads do not count.

    Args:
        in_pairs: as of `is_worth_inlining`.
    """
    found: dict[str, int] = {}
    places = _places_read(names, in_pairs=in_pairs)
    for name, shape in names.shapes.items():
        total = 0
        for index, stage in enumerate(shape.stages):
            own = _own_operations(shape, index)
            for read in stage.reads:
                inner = names.funcs.get(read.name)
                if inner is None or inner not in found:
                    continue
                callee = names.shapes[inner]
                repeated = places[inner] / max(1, callee.points)
                is_cheap = is_trivial(names, inner) or repeated * found[inner] <= budget or repeated <= _ONCE
                if is_sum(callee) or is_cheap:
                    own += read.places * found[inner]
            total += own * stage.steps
        found[name] = total
    return found


def _places_read(names: PipelineNames, *, in_pairs: bool) -> Mapping[str, float]:
    """How many points of each Func are read, all in all."""
    found = dict.fromkeys(names.shapes, 0.0)
    for name, shape in reversed([*names.shapes.items()]):
        for index, stage in enumerate(shape.stages):
            points = found[name] if is_trivial(names, name) else _points(shape, index, 0)
            for read in stage.reads:
                if read.name in names.funcs:
                    found[names.funcs[read.name]] += _places_of(read, in_pairs=in_pairs) * points
    return found


def is_boundary(shape: FuncShape) -> bool:
    """Whether a Func is another one beyond its edges: where there is no edge, that costs nothing."""
    if len(shape.stages) != 1 or len(shape.stages[0].reads) != 1:
        return False
    read = shape.stages[0].reads[0]
    is_fixed = all(dimension.width == 1 for dimension in read.dimensions)
    return read.places == 1 and is_fixed and any(dimension.slopes is None for dimension in read.dimensions)


def is_sum(shape: FuncShape) -> bool:
    """Whether a Func has updates, so that its readers cannot take its place."""
    return len(shape.stages) > 1


def is_trivial(names: PipelineNames, name: str) -> bool:
    """Whether a Func is no more than another name of what it reads, which has no updates."""
    shape = names.shapes[name]
    if len(shape.stages) != 1 or shape.is_output or _own_operations(shape, 0) > TRIVIAL:
        return False
    read = [names.funcs.get(read.name) for read in shape.stages[0].reads]
    return not any(callee is not None and is_sum(names.shapes[callee]) for callee in read)


def _own_operations(shape: FuncShape, stage: int) -> int:
    """The operations of one point of a stage, without reads and their indices."""
    if is_boundary(shape):
        return 1
    reads = shape.stages[stage].reads
    operations = shape.stages[stage].operations - sum(read.places * (len(read.dimensions) + 1) for read in reads)
    lookups = sum(read.places for read in reads if any(dimension.is_of_data for dimension in read.dimensions))
    return max(1, operations) + _LOOKUP * lookups


def _spoils_vectors(structure: DraftStructure, name: str) -> bool:
    """Whether what reads a Func is right in vectors only as long as that is in memory."""
    shape = structure.shape(name)
    readers = [(structure.shape(site.func), site.stage) for site in structure.users.get(name, ())]
    stages = [reader.stages[stage] for reader, stage in readers if reader is not None]
    is_spoilt = any(stage.is_wrong_if_inlined and not stage.is_wrong_in_vectors for stage in stages)
    return shape is not None and shape.is_narrow and is_spoilt


def is_worth_inlining(
    structure: DraftStructure, name: str, weight: int, budget: int, *, channels_share: bool, in_pairs: bool
) -> bool:
    """Whether a Func is better computed where it is read, now that all that read it are scheduled.

    Args:
        channels_share: loops of few iterations are unrolled: what does not depend on them is computed once.
        in_pairs: loops are unrolled by two where both iterations read the same point: it is computed once for them.
    """
    shape = structure.shape(name)
    if shape is None or len(shape.stages) != 1 or shape.is_output or shape.is_extern or not structure.users.get(name):
        return False
    if _spoils_vectors(structure, name):
        return False
    if name in structure.names.shapes and is_trivial(structure.names, name):
        return True
    if hosts_scan(structure, name):
        return False
    most = math.prod(structure.region_at(name, None))
    computed = 0.0
    for site in structure.users[name]:
        reader = structure.shape(site.func)
        if reader is not None:
            ignored = CHANNELS if channels_share and min(structure.region_at(name, ROOT), default=9) > CHANNELS else 0
            # Where data say which, a point reads few of all that it might read.
            places = min(most, _places(structure, site, name, in_pairs=in_pairs))
            computed += places * _points(reader, site.stage, ignored)
    repeated = computed / max(1, shape.points)
    return repeated <= _ONCE or weight * repeated <= budget


def _places(structure: DraftStructure, site: Site, name: str, *, in_pairs: bool) -> float:
    """How many places of a Func one point of a stage reads, through whatever is inlined between."""
    found: dict[Site, float] = {}

    def places(of: Site) -> float:
        if of not in found:
            found[of] = 0.0
            for called, read in structure.reads[of].items():
                if called == name:
                    found[of] += _places_of(read, in_pairs=in_pairs)
                elif structure.is_inlined(called):
                    found[of] += _places_of(read, in_pairs=in_pairs) * places(Site(called, 0))
        return found[of]

    return places(site)


def _places_of(read: ReadShape, *, in_pairs: bool) -> float:
    """How many places one point reads; what a pair reads counts half for each of them."""
    return read.places / 2 ** len(read.halved_loops) if in_pairs else read.places


def hosts_scan(structure: DraftStructure, name: str) -> bool:
    """Whether strips of a Func are the only way to take a large Func with updates in parts that fit a cache."""
    readers = [structure.shape(site.func) for site in structure.users[name]]
    if len(structure.draft.funcs[name].stages) != 1 or not any(reader and is_sum(reader) for reader in readers):
        return False
    for read in structure.reads[Site(name, 0)].values():
        callee = structure.names.shape.by_name.get(read.name)
        if callee is not None and is_scan(callee) and read.is_of_one_point and bytes_of(callee) > LARGE_BYTES:
            return True
    return False


def is_scan(shape: FuncShape) -> bool:
    """Whether updates go along an argument, each step after the one before."""
    for stage in shape.stages[1:]:
        loops = {loop.name for loop in stage.loops}
        is_along = any(arg not in loops and extent != 1 for arg, extent in zip(shape.args, shape.extents, strict=True))
        if is_along and any(loop.is_reduction for loop in stage.loops) and not stage.is_associative:
            return True
    return False


def bytes_of(shape: FuncShape) -> int:
    """What all of a Func takes."""
    return shape.points * shape.value_bytes


def _points(shape: FuncShape, stage: int, ignored: int) -> int:
    """How many points a stage computes, the iterations of its reductions counted.

    Args:
        ignored: so short loops do not count.
    """
    loops = shape.stages[stage].loops
    sizes = dict(zip(shape.args, shape.extents, strict=True))
    extents = [(sizes.get(loop.name) if not loop.is_reduction else loop.extent) or 1 for loop in loops]
    return math.prod(extent for extent in extents if extent > ignored)
