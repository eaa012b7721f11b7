"""How much of a sum of products is kept in registers at once, as libraries of linear algebra do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.sketches.roles import work_of
from halide_autotune.targets.pipeline.shape import FuncShape

# A reduction of fewer steps gains nothing from summing in registers.
_LONG_REDUCTION = 8
_MOST_VECTORS = 8
# What each place reads may lie in the same set of a core's first cache, which holds eight lines.
_MOST_PLACES = 8
# Of the work of a pipeline. Of Halide's apps conv_layer has 1.0 in such sums, max_filter 0.46, and none else over 0.1.
_GOOD_PART = 1 / 3
# So many sums must be under way for a core to be busy: two at a time, each of which takes four cycles.
_LATENCY = 8
# In products: a load, of which a core does hardly two at a time; what a step costs besides; and what each vector does,
# which may not be in the first cache.
_LOAD, _STEP, _VECTOR = 1.2, 1.0, 0.25


@dataclass(frozen=True)
class Block:
    """Sums that are kept in registers: so many vectors, of so many points of the next loop, of so many rows."""

    vectors: int = 1
    points: int = 1
    rows: int = 1

    @property
    def sums(self) -> int:
        """How many vectors of sums there are."""
        return self.vectors * self.points * self.rows


def blocks_of(vectors: int, points: int, rows: int, registers: int) -> Sequence[Block]:
    """Blocks that fit, the most promising first: those that load little for each product and leave little over.

    A step of the reduction loads each vector once and spreads a number for each point to a vector (Goto and van de
    Geijn 2008, section 4.2, for the shape of the block). What the last blocks of a loop compute twice counts; vectors
    are never shared out unevenly, since those of packed weights lie in blocks.

    Args:
        vectors: the extent, in vectors, of the loop along the vectors.
        points: the extent of the next loop; 1 if there is none.
        rows: that of the loop over rows.
        registers: of the target, each for a vector.
    """
    extents = (vectors, points, rows)
    mosts = (_MOST_VECTORS, _MOST_PLACES, _MOST_PLACES)
    costs = {}
    for size in product(*(range(1, min(each, most) + 1) for each, most in zip(extents, mosts, strict=True))):
        block = Block(*size)
        places = block.points * block.rows
        if (
            places > _MOST_PLACES
            or vectors % block.vectors
            or block.sums + 1 + (block.vectors if places > 1 else 0) > registers
        ):
            continue
        step = max(block.sums, _LOAD * (block.vectors + places), _LATENCY) + _STEP + _VECTOR * block.vectors
        twice = math.prod(-(-extent // one) * one / extent for extent, one in zip(extents, size, strict=True))
        # Of as many places a square has the fewest neighbours.
        costs[block] = (step / block.sums * twice, block.points + block.rows)
    found: dict[tuple[int, int], Block] = {}
    for block in sorted(costs, key=costs.__getitem__):
        found.setdefault((block.vectors, block.sums), block)
    return [*found.values()]


def is_largely_sums(names: PipelineNames) -> bool:
    """Whether a pipeline's work is in sums that `adds_up` finds, for a good part of it."""
    sums = _sums_of(names, names.shapes.values())
    in_sums = sum(work_of(names.shapes[name]) for name in sums)
    return in_sums >= _GOOD_PART * sum(map(work_of, names.shapes.values()))


def adds_up(names: PipelineNames, shape: FuncShape) -> bool:
    """Whether a Func reads, point by point, a sum that could be kept in registers."""
    return bool(_sums_of(names, [shape]))


def _sums_of(names: PipelineNames, readers: Iterable[FuncShape]) -> set[str]:
    """The sums that are read point by point, also by what is no more than a value of these points."""
    todo, seen = [*readers], set()
    found = set()
    while todo:
        shape = todo.pop()
        for read in shape.stages[0].reads if shape.stages else ():
            inner = names.funcs.get(read.name)
            if inner is None or inner in seen or read.places != 1 or not read.is_of_one_point:
                continue
            seen.add(inner)
            callee = names.shapes[inner]
            if len(callee.stages) == 1:
                todo.append(callee)
            elif callee.sum_steps >= _LONG_REDUCTION:
                found.add(inner)
    return found
