"""What the stages of random programs compute with: values that no schedule and no order of sums can change."""

from __future__ import annotations

import halide as hl

c = hl.Var("c")
# Sums of 32-bit integers must not overflow: what they are then is undefined.
LARGEST = 1 << 12
BINS = 256


def largest(kind: hl.Type) -> int:
    """Of the values that an integer type holds here."""
    return int(min(LARGEST, 2 ** kind.bits() - 1))


def bounded(value: hl.Expr | hl.FuncRef) -> hl.Expr:
    """A value that can be added up."""
    return _clamped_if(hl.Int(32), value)


def whole(value: hl.Expr | hl.FuncRef) -> hl.Expr:
    """A value as an integer; of a number that is too large for one it would be undefined."""
    return hl.cast(hl.Int(32), _clamped_if(hl.Float(32), value))


def bin_of(value: hl.Expr | hl.FuncRef) -> hl.Expr:
    return hl.clamp(whole(value), 0, BINS - 1)


def _clamped_if(kind: hl.Type, value: hl.Expr | hl.FuncRef) -> hl.Expr:
    value = hl.Expr(value) if isinstance(value, hl.FuncRef) else value
    return hl.clamp(value, -LARGEST, LARGEST) if value.type() == kind else value


def interpolated(func: hl.Func, places: list[tuple[hl.Expr, int]]) -> hl.Expr:
    """What a coarse Func of cells, and of c, has between its nodes, at places that are given with a cell's width."""
    kind = hl.Float(32)

    def between(nodes: tuple[hl.Expr, ...], rest: list[tuple[hl.Expr, int]]) -> hl.Expr:
        if not rest:
            return hl.cast(kind, func[(*nodes, c)])
        (place, cell), *others = rest
        low, high = (between((*nodes, place / cell + step), others) for step in (0, 1))
        return low + (high - low) * hl.cast(kind, place % cell) / cell

    return between((), places)


def sum_of(values: list[hl.Expr]) -> hl.Expr:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
