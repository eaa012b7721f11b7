"""How many cache lines an access touches while the loops around it run."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from halide_autotune.targets.lowering.loop_nest import Access

LINE_BYTES = 64


def lines_touched(access: Access, loops: Sequence[tuple[float, float]]) -> float:
    """The cache lines that an access and its copies touch over some loops, each counted once.

    The copies, the lanes of a vector and the data that decide where it is count as loops do. They are taken from the
    smallest stride to the largest. One that moves within what is touched so far, or by rows within these rows,
    extends it, as the windows of a stencil do; any other repeats it. Where data decide, no more lines are touched than
    there are accesses.

    Args:
        loops: of each, the elements that a step moves the access, and how many steps there are.
    """
    line_elements = LINE_BYTES / access.element_bytes
    span, rows, row_stride, repeated = 1.0, 1.0, 0.0, 1.0
    moves = [*loops, *access.copies, *access.spread]
    if access.strides is None:
        repeated *= access.count
    if access.lane_stride is not None:
        moves.append((access.lane_stride, access.lanes))
    elif not access.spread:
        repeated *= access.lanes
    for stride, steps in sorted((abs(stride), steps) for stride, steps in moves if stride and steps > 1):
        if not row_stride and stride <= max(span, line_elements):
            span += stride * (steps - 1)
        elif row_stride and stride <= rows * row_stride and stride % row_stride == 0:
            rows += stride / row_stride * (steps - 1)
        else:
            repeated *= rows
            rows, row_stride = steps, stride
    lines = ceil(span / line_elements) * rows * repeated
    if not access.spread:
        return lines
    return min(lines, access.count * access.lanes * prod(max(1.0, steps) for _, steps in loops))
