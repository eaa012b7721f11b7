"""Parts of random programs whose Funcs have more dimensions than pictures: for each move, or each size of a window."""

from __future__ import annotations

from collections.abc import Callable

import halide as hl
from program_values import LARGEST, bounded, c, sum_of

x, y = hl.Var("x"), hl.Var("y")
# Makes a Func whose name begins so, and keeps it among the program's.
MakeFunc = Callable[[str], hl.Func]


def matched(make: MakeFunc, source: hl.Func, kind: hl.Type, radius: int) -> hl.Expr:
    """Block matching, as for motion and stereo: how a picture differs from itself moved, added up around each pixel.

    Of numbers the mean of all moves by their likeness (non-local means: Buades, Coll and Morel 2005); of integers the
    least difference.
    """
    across, along = hl.Var("across"), hl.Var("along")
    costs = make("difference")
    here, there = (hl.cast(kind, bounded(each)) for each in (source[x, y, c], source[x + across, y + along, c]))
    costs[x, y, c, across, along] = hl.cast(kind, hl.absd(here, there))
    for step in ((1, 0), (0, 1)):
        added = make("costs")
        taken = [costs[x + k * step[0], y + k * step[1], c, across, along] for k in (-1, 0, 1)]
        added[x, y, c, across, along] = sum_of([hl.Expr(each) for each in taken])
        costs = added
    moves = hl.RDom([(-radius, 2 * radius + 1)] * 2)
    cost = costs[x, y, c, moves.x, moves.y]
    if kind != hl.Float(32):
        least = make("least")
        least[x, y, c] = hl.cast(kind, LARGEST)
        is_moved = (moves.x != 0) | (moves.y != 0)
        least[x, y, c] = hl.min(least[x, y, c], hl.select(is_moved, cost, hl.cast(kind, LARGEST)))
        return hl.Expr(least[x, y, c])
    likeness = hl.exp(cost * hl.f32(-0.01))
    values, weights = make("values"), make("likeness")
    for func, taken in ((values, likeness * source[x + moves.x, y + moves.y, c]), (weights, likeness)):
        func[x, y, c] = hl.f32(0)
        func[x, y, c] += taken
    return values[x, y, c] / weights[x, y, c]


def dilated(make: MakeFunc, source: hl.Func, kind: hl.Type, height: int, doublings: int) -> hl.Expr:
    """The largest value of a round window: along columns by windows that double, then across, the farther the lower."""
    size = hl.Var("size")
    rows, reach = hl.RDom([(0, height), (1, doublings)]), hl.RDom([(-doublings, 2 * doublings + 1)])
    levels, widest = make("levels"), make("widest")
    levels[x, y, c, size] = hl.cast(kind, source[x, y, c])
    below = hl.clamp(rows.x + (hl.i32(1) << (rows.y - 1)), 0, height - 1)
    levels[x, rows.x, c, rows.y] = hl.max(levels[x, rows.x, c, rows.y - 1], levels[x, below, c, rows.y - 1])
    level = doublings - hl.cast(hl.Int(32), hl.abs(reach.x))
    column = levels[x + reach.x, hl.clamp(y, 0, height - 1), c, hl.clamp(level, 0, doublings)]
    widest[x, y, c] = hl.cast(kind, source[x, y, c])
    widest[x, y, c] = hl.max(widest[x, y, c], column)
    return hl.Expr(widest[x, y, c])
