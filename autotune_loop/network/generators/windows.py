"""What generators of operators on pictures have in common: the window that moves over a picture, and fixed shapes.

Generators import it as the module beside them, since Halide's process runs each of their files by itself.
"""

from __future__ import annotations

import halide as hl
from blocks import Block

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
Size = tuple[int, ...]
# Widths of vectors of floats and of bytes that are moved.
WIDTHS, WIDTHS_OF_BYTES = (16, 8, 4), (32, 16, 8)
# From so many blocks of channels on, each core takes some of them.
TASKS = 4
# So much of a picture stays in a core's second cache.
_STRIP_BYTES = 2**18
# Of fewer products, or numbers that are only moved, tasks of several cores cost more than they save.
_WORTH_TASKS = 2**16


class Windowed(hl.Generator):
    """A picture, and the window that moves over it."""

    rows = hl.GeneratorParam(56)
    columns = hl.GeneratorParam(56)
    channels_in = hl.GeneratorParam(64)
    kernel_rows = hl.GeneratorParam(3)
    kernel_columns = hl.GeneratorParam(3)
    stride_rows = hl.GeneratorParam(1)
    stride_columns = hl.GeneratorParam(1)
    dilation_rows = hl.GeneratorParam(1)
    dilation_columns = hl.GeneratorParam(1)
    pad_rows_before = hl.GeneratorParam(0)
    pad_rows_after = hl.GeneratorParam(0)
    pad_columns_before = hl.GeneratorParam(0)
    pad_columns_after = hl.GeneratorParam(0)


class Window:
    """The window of a convolution or a pool along rows and columns, from a generator's parameters."""

    def __init__(self, g: hl.Generator, channels: int) -> None:
        self.kernel = (int(g.kernel_columns), int(g.kernel_rows))
        self.strides = (int(g.stride_columns), int(g.stride_rows))
        self.dilations = (int(g.dilation_columns), int(g.dilation_rows))
        columns, rows = (
            (int(g.pad_columns_before), int(g.pad_columns_after)),
            (int(g.pad_rows_before), int(g.pad_rows_after)),
        )
        self.pads = (columns, rows)
        self.source = (channels, int(g.columns), int(g.rows))
        self.size = tuple(
            (size + sum(pad) - dilation * (kernel - 1) - 1) // stride + 1
            for size, pad, dilation, kernel, stride in zip(
                self.source[1:], self.pads, self.dilations, self.kernel, self.strides, strict=True
            )
        )

    def inside(self) -> hl.Expr:
        """How many places of a window at x, y are of the picture."""
        counts = []
        for at, kernel, stride, pad, size in zip(
            (x, y), self.kernel, self.strides, self.pads, self.source[1:], strict=True
        ):
            begin = at * stride - pad[0]
            counts.append(hl.min(begin + kernel, size) - hl.max(begin, 0))
        return counts[0] * counts[1]

    def padded(self, source: hl.Func, outside: float) -> hl.Func:
        """The picture with what is outside."""
        if not any(map(any, self.pads)):
            return source
        return hl.BoundaryConditions.constant_exterior(source, hl.f32(outside), [(0, extent) for extent in self.source])

    def place(self, across: hl.Expr, along: hl.Expr) -> tuple[hl.Expr, hl.Expr]:
        """Column and row of the picture for a place of the window at x, y."""
        return (
            x * self.strides[0] + across * self.dilations[0] - self.pads[0][0],
            y * self.strides[1] + along * self.dilations[1] - self.pads[1][0],
        )


def fix_output(output: hl.Func, shape: Size) -> None:
    fix(output.output_buffer(), shape)
    output.set_estimates([(0, extent) for extent in shape])


def fix(buffer: hl.Buffer, shape: Size) -> None:
    """Nothing of a network's shapes is left to be known when it runs."""
    stride = 1
    for place, extent in enumerate(shape):
        buffer.dim(place).set_bounds(0, extent)
        buffer.dim(place).set_stride(stride)
        stride *= extent
    buffer.set_estimates([(0, extent) for extent in shape])


def has_own_vectors(g: hl.Generator) -> bool:
    """Whether a generator's own schedule is asked for, and may have vectors: Halide 21's are wrong for some arithmetic
    of processors other than these."""
    return not g.using_autoscheduler() and g.target().arch in (hl.TargetArch.X86, hl.TargetArch.ARM)


def schedule_plainly(g: hl.Generator, total: hl.Func) -> None:
    """Without vectors, unless an autoscheduler has the word: cores take rows of a picture."""
    if g.using_autoscheduler():
        return
    if total.dimensions() < 3:
        total.compute_root()
        return
    total.compute_at(g.output, y)
    g.output.parallel(y)


def in_vectors(func: hl.Func, channels: int, widths: tuple[int, ...]) -> hl.Func:
    """What is moved, in vectors of channels, of the first width that they fill."""
    lanes = next((lanes for lanes in widths if channels % lanes == 0), 1)
    return func.vectorize(func.args()[0], lanes) if lanes > 1 else func


def take_rows(g: hl.Generator, func: hl.Func, channels: int, widths: tuple[int, ...], count: int) -> None:
    """Make vectors of channels, unless an autoscheduler has the word; cores take rows where there are many numbers."""
    if has_own_vectors(g):
        in_vectors(func, channels, widths)
    if not g.using_autoscheduler():
        share(func, func.args()[-1], count)


def share(func: hl.Func, loop: hl.Var, count: int) -> None:
    """Let cores share a loop, if so many products or numbers are worth it."""
    if count >= _WORTH_TASKS:
        func.parallel(loop)


def take_blocks(output: hl.Func, size: int, lanes: int, block: Block, channels: int, tail: hl.TailStrategy) -> hl.Var:
    """Make blocks of `size` channels and some pixels, around which the loop over columns is.

    Returns:
        The outermost loop, for cores to share: over blocks of channels, or where these are few, over rows.
    """
    outer, inner, column, row = hl.Var("outer"), hl.Var("inner"), hl.Var("column"), hl.Var("row")
    output.split(c, outer, inner, size, tail).split(x, x, column, block.columns).split(y, y, row, block.rows)
    lane, *vectors = _take_lanes(output, inner, size, lanes)
    *inside, tasks = (x, y, outer) if -(-channels // size) >= TASKS else (x, outer, y)
    # What is known of a channel is read once for all pixels of the block.
    output.reorder(lane, column, row, *vectors, *inside, tasks).unroll(column).unroll(row)
    return tasks


def take_strips(
    output: hl.Func, block: int, lanes: int, size: tuple[int, int], rows: int, tail: hl.TailStrategy
) -> tuple[hl.Var, hl.Var]:
    """Make blocks of channels and of pixels of a row, in strips of rows.

    Args:
        size: how many pixels, of how many in a row.

    Returns:
        The loop around a block, and that of the strips, for cores to share.
    """
    outer, inner, column, strip = hl.Var("outer"), hl.Var("inner"), hl.Var("column"), hl.Var("strip")
    output.split(c, outer, inner, block, tail).split(x, x, column, min(size)).split(y, strip, y, rows)
    lane, *vectors = _take_lanes(output, inner, block, lanes)
    output.reorder(lane, column, *vectors, outer, x, y, strip).unroll(column)
    return outer, strip


def _take_lanes(output: hl.Func, inner: hl.Var, block: int, lanes: int) -> list[hl.Var]:
    """Make vectors of a block's channels, and return the loops over lanes and, of several vectors, over these."""
    if block == lanes:  # a further split would be guarded once more
        output.vectorize(inner)
        return [inner]
    lane = hl.Var("lane")
    output.split(inner, inner, lane, lanes).vectorize(lane)
    return [lane, inner]


def rows_of_strip(height: int, row_bytes: int) -> int:
    """How many rows of an output a core takes at once, each of which reads so many bytes of new rows."""
    return max(1, min(-(-height // TASKS), _STRIP_BYTES // row_bytes))
