"""The operators of networks in 32-bit floats, each a generator: convolutions, dense layers, pooling and what is done to
each number.

Pictures are rows of columns of channels (NHWC, one picture). What a generator needs to know of a layer are its
parameters; all shapes are fixed by them. A reduction has what follows it in place: bias, addition, activation.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import halide as hl
from blocks import block_in_registers
from windows import (
    WIDTHS,
    Size,
    Window,
    Windowed,
    c,
    fix,
    fix_output,
    has_own_vectors,
    in_vectors,
    rows_of_strip,
    schedule_plainly,
    share,
    take_blocks,
    take_rows,
    take_strips,
    x,
    y,
)

# Of a row, so many pixels of a depthwise convolution are summed at once.
_COLUMNS = 4
# So many vectors of channels are summed at once.
_VECTORS = 4
# Windows of so many places are unrolled.
_UNROLLED = 9


class _Reduction(hl.Generator):
    """What is done to a sum of products."""

    has_bias = hl.GeneratorParam(True)
    # Something of the output's shape that is added before the activation.
    adds = hl.GeneratorParam(False)
    activation = hl.GeneratorParam("none")
    # Of an activation that has one.
    slope = hl.GeneratorParam(0.0)


@hl.generator(name="convolution")
class Convolution(Windowed, _Reduction):
    """With `block` the channels out are taken apart, so that those of a block lie side by side for all of a window: who
    builds the network packs the weights once, and the generator's own schedule sums blocks in registers."""

    channels_out = hl.GeneratorParam(64)
    groups = hl.GeneratorParam(1)
    # Channels out that lie side by side in the weights; 0 for all of them.
    block = hl.GeneratorParam(0)

    input = hl.InputBuffer(hl.Float(32), 3)
    output = hl.OutputBuffer(hl.Float(32), 3)

    def configure(g) -> None:
        g.add_input("weights", hl.InputBuffer(hl.Float(32), 5 if int(g.block) else 4))
        _configure(g, 3)

    def generate(g) -> None:
        channels_out, groups, block = int(g.channels_out), int(g.groups), int(g.block)
        each_in, each_out = int(g.channels_in) // groups, channels_out // groups
        window = Window(g, int(g.channels_in))
        padded = window.padded(g.input, 0.0)
        reach = hl.RDom([(0, each_in), (0, window.kernel[0]), (0, window.kernel[1])])
        first = (c / each_out) * each_in if groups > 1 else 0
        of_window = (reach.x, reach.y, reach.z)
        weight = g.weights[(c % block, *of_window, c / block)] if block else g.weights[(c, *of_window)]
        total = hl.Func("total")
        total[c, x, y] = g.bias[c] if g.has_bias else hl.f32(0)
        total[c, x, y] += weight * padded[(reach.x + first, *window.place(reach.y, reach.z))]
        fix(g.input, window.source)
        fix(g.weights, (block or channels_out, each_in, *window.kernel, *([channels_out // block] if block else [])))
        _finish(g, total, (channels_out, *window.size))
        if block and has_own_vectors(g):
            _schedule_blocks(g, total, of_window, (channels_out, *window.size))
            if padded is not g.input:
                padded.compute_root()
                take_rows(g, padded, int(g.channels_in), WIDTHS, math.prod(window.source))
        else:
            _schedule_strips(g, total, padded, of_window, (channels_out, *window.size))


@hl.generator(name="depthwise_convolution")
class DepthwiseConvolution(Windowed, _Reduction):
    multiplier = hl.GeneratorParam(1)

    input = hl.InputBuffer(hl.Float(32), 3)
    # As Keras has them: of each channel in the channels out that it is multiplied to.
    weights = hl.InputBuffer(hl.Float(32), 3)
    output = hl.OutputBuffer(hl.Float(32), 3)

    def configure(g) -> None:
        _configure(g, 3)

    def generate(g) -> None:
        channels, multiplier = int(g.channels_in), int(g.multiplier)
        window = Window(g, channels)
        padded = window.padded(g.input, 0.0)
        reach = hl.RDom([(0, window.kernel[0]), (0, window.kernel[1])])
        source = c if multiplier == 1 else c / multiplier
        total = hl.Func("total")
        total[c, x, y] = g.bias[c] if g.has_bias else hl.f32(0)
        total[c, x, y] += g.weights[c, reach.x, reach.y] * padded[(source, *window.place(reach.x, reach.y))]
        fix(g.input, window.source)
        fix(g.weights, (channels * multiplier, *window.kernel))
        _finish(g, total, (channels * multiplier, *window.size))
        _schedule_strips(g, total, padded, (reach.x, reach.y), (channels * multiplier, *window.size))


@hl.generator(name="dense")
class Dense(_Reduction):
    channels_in = hl.GeneratorParam(512)
    channels_out = hl.GeneratorParam(1000)
    # As a convolution's.
    block = hl.GeneratorParam(0)

    input = hl.InputBuffer(hl.Float(32), 1)
    output = hl.OutputBuffer(hl.Float(32), 1)

    def configure(g) -> None:
        g.add_input("weights", hl.InputBuffer(hl.Float(32), 3 if int(g.block) else 2))
        _configure(g, 1)

    def generate(g) -> None:
        channels_in, channels_out, block = int(g.channels_in), int(g.channels_out), int(g.block)
        reach = hl.RDom([(0, channels_in)])
        total = hl.Func("total")
        total[c] = g.bias[c] if g.has_bias else hl.f32(0)
        weight = g.weights[c % block, reach.x, c / block] if block else g.weights[c, reach.x]
        total[c] += weight * g.input[reach.x]
        fix(g.input, (channels_in,))
        fix(g.weights, (block or channels_out, channels_in, *([channels_out // block] if block else [])))
        _finish(g, total, (channels_out,))
        _schedule_sums(g, total, (reach.x,), channels_out, channels_in * channels_out, block)


@hl.generator(name="pool")
class Pool(Windowed):
    is_max = hl.GeneratorParam(True)

    input = hl.InputBuffer(hl.Float(32), 3)
    output = hl.OutputBuffer(hl.Float(32), 3)

    def generate(g) -> None:
        window = Window(g, int(g.channels_in))
        reach = hl.RDom([(0, window.kernel[0]), (0, window.kernel[1])])
        place = window.place(reach.x, reach.y)
        total = hl.Func("total")
        if g.is_max:
            padded = window.padded(g.input, float("-inf"))
            total[c, x, y] = hl.f32(float("-inf"))
            total[c, x, y] = hl.max(total[c, x, y], padded[(c, *place)])
            g.output[c, x, y] = total[c, x, y]
        else:
            # What is outside does not count.
            padded = window.padded(g.input, 0.0)
            total[c, x, y] = hl.f32(0)
            total[c, x, y] += padded[(c, *place)]
            g.output[c, x, y] = total[c, x, y] / hl.cast(hl.Float(32), window.inside())
        fix(g.input, window.source)
        fix_output(g.output, (int(g.channels_in), *window.size))
        _schedule_strips(g, total, padded, (reach.x, reach.y), (int(g.channels_in), *window.size))


@hl.generator(name="global_pool")
class GlobalPool(hl.Generator):
    rows = hl.GeneratorParam(7)
    columns = hl.GeneratorParam(7)
    channels_in = hl.GeneratorParam(512)
    is_max = hl.GeneratorParam(False)

    input = hl.InputBuffer(hl.Float(32), 3)
    output = hl.OutputBuffer(hl.Float(32), 1)

    def generate(g) -> None:
        rows, columns = int(g.rows), int(g.columns)
        reach, total = hl.RDom([(0, columns), (0, rows)]), hl.Func("total")
        value = g.input[c, reach.x, reach.y]
        total[c] = hl.f32(float("-inf") if g.is_max else 0)
        total[c] = hl.max(total[c], value) if g.is_max else total[c] + value
        g.output[c] = total[c] if g.is_max else total[c] / (rows * columns)
        fix(g.input, (int(g.channels_in), columns, rows))
        fix_output(g.output, (int(g.channels_in),))
        channels = int(g.channels_in)
        _schedule_sums(g, total, (reach.x, reach.y), channels, rows * columns * channels, 0)


@hl.generator(name="softmax")
class Softmax(hl.Generator):
    """Along the channels of each pixel; a vector is one."""

    channels_in = hl.GeneratorParam(1000)
    pixels = hl.GeneratorParam(1)

    input = hl.InputBuffer(hl.Float(32), 2)
    output = hl.OutputBuffer(hl.Float(32), 2)

    def generate(g) -> None:
        shape = (int(g.channels_in), int(g.pixels))
        reach = hl.RDom([(0, shape[0])])
        largest, powers, total = hl.Func("largest"), hl.Func("powers"), hl.Func("total")
        largest[x] = hl.f32(float("-inf"))
        largest[x] = hl.max(largest[x], g.input[reach.x, x])
        powers[c, x] = hl.exp(g.input[c, x] - largest[x])
        total[x] = hl.f32(0)
        total[x] += powers[reach.x, x]
        g.output[c, x] = powers[c, x] / total[x]
        fix(g.input, shape)
        fix_output(g.output, shape)
        if not g.using_autoscheduler():
            for each in (largest, powers, total):
                each.compute_root()
        if has_own_vectors(g):
            for each in (powers, g.output):
                in_vectors(each, shape[0], WIDTHS)


@hl.generator(name="elementwise")
class Elementwise(hl.Generator):
    rows = hl.GeneratorParam(56)
    columns = hl.GeneratorParam(56)
    channels_in = hl.GeneratorParam(64)
    # With the second input: add, multiply, subtract; scale takes a factor and an offset for each channel; none takes
    # nothing.
    operation = hl.GeneratorParam("add")
    # The second input has one row and column.
    spreads = hl.GeneratorParam(False)
    # The first input is subtracted from the second.
    reverses = hl.GeneratorParam(False)
    activation = hl.GeneratorParam("none")
    slope = hl.GeneratorParam(0.0)

    input = hl.InputBuffer(hl.Float(32), 3)
    output = hl.OutputBuffer(hl.Float(32), 3)

    def configure(g) -> None:
        if str(g.operation) == "scale":
            g.add_input("factors", hl.InputBuffer(hl.Float(32), 1))
            g.add_input("offsets", hl.InputBuffer(hl.Float(32), 1))
        elif str(g.operation) != "none":
            g.add_input("second", hl.InputBuffer(hl.Float(32), 3))

    def generate(g) -> None:
        shape = (int(g.channels_in), int(g.columns), int(g.rows))
        value, operation = g.input[c, x, y], str(g.operation)
        if operation == "scale":
            value = value * g.factors[c] + g.offsets[c]
            fix(g.factors, shape[:1])
            fix(g.offsets, shape[:1])
        elif operation != "none":
            second = g.second[c, 0, 0] if g.spreads else g.second[c, x, y]
            value, second = (second, value) if g.reverses else (value, second)
            value = _OPERATIONS[operation](value, second)
            fix(g.second, (shape[0], 1, 1) if g.spreads else shape)
        g.output[c, x, y] = _activated(g, value)
        fix(g.input, shape)
        fix_output(g.output, shape)
        take_rows(g, g.output, shape[0], WIDTHS, math.prod(shape))


@hl.generator(name="lstm_state")
class LstmState(hl.Generator):
    """A state after a step of a long short-term memory, from its gates before their activations: input, forget,
    candidate and output side by side, as Keras has them."""

    units = hl.GeneratorParam(128)
    # The hidden state, which is what the step gives; else the carry.
    is_hidden = hl.GeneratorParam(True)

    input = hl.InputBuffer(hl.Float(32), 1)
    carry = hl.InputBuffer(hl.Float(32), 1)
    output = hl.OutputBuffer(hl.Float(32), 1)

    def generate(g) -> None:
        units, sigmoid = int(g.units), _ACTIVATIONS["sigmoid"]
        taken = sigmoid(g.input[c]) * hl.tanh(g.input[c + 2 * units])
        kept = sigmoid(g.input[c + units]) * g.carry[c] + taken
        g.output[c] = sigmoid(g.input[c + 3 * units]) * hl.tanh(kept) if g.is_hidden else kept
        fix(g.input, (4 * units,))
        fix(g.carry, (units,))
        fix_output(g.output, (units,))
        if has_own_vectors(g):
            in_vectors(g.output, units, WIDTHS)


def _configure(g: hl.Generator, dimensions: int) -> None:
    """The inputs that a reduction may have: a bias, and something of the output's shape that is added."""
    if g.has_bias:
        g.add_input("bias", hl.InputBuffer(hl.Float(32), 1))
    if g.adds:
        g.add_input("added", hl.InputBuffer(hl.Float(32), dimensions))


def _finish(g: hl.Generator, total: hl.Func, shape: Size) -> None:
    """What follows a reduction in place, and the shapes that all of them have."""
    place = (c, x, y)[: len(shape)]
    value = total[place] + g.added[place] if g.adds else total[place]
    g.output[place] = _activated(g, value)
    if g.has_bias:
        fix(g.bias, shape[:1])
    if g.adds:
        fix(g.added, shape)
    fix_output(g.output, shape)


def _schedule_strips(g: hl.Generator, total: hl.Func, padded: hl.Func, reach: tuple[hl.RVar, ...], shape: Size) -> None:
    """Reduce vectors of channels at some pixels of a row; a core takes strips of rows, padded as they are needed."""
    if not has_own_vectors(g):
        schedule_plainly(g, total)
        return
    channels, width, height = shape
    lanes = _lanes(g, channels)
    vectors = 2 if channels % (2 * lanes) == 0 else 1
    rows = rows_of_strip(height, 4 * channels * width * int(g.stride_rows))
    outer, strip = take_strips(g.output, vectors * lanes, lanes, (_COLUMNS, width), rows, hl.TailStrategy.Auto)
    window = int(g.kernel_rows) * int(g.kernel_columns)
    share(g.output, strip, math.prod(shape) * window)
    total.compute_at(g.output, outer).vectorize(c, lanes).unroll(c).unroll(x)
    sums = total.update().reorder(c, x, *reach, y).vectorize(c, lanes).unroll(c).unroll(x)
    if window <= _UNROLLED:
        sums.unroll(reach[-2]).unroll(reach[-1])
    if padded is not g.input:
        in_vectors(padded, int(g.channels_in), WIDTHS).compute_at(g.output, strip)


def _schedule_sums(
    g: hl.Generator, total: hl.Func, reach: tuple[hl.RVar, ...], channels: int, count: int, block: int
) -> None:
    """Reduce some blocks of channels in registers; each core reads the weights of its own channels, as they lie.

    Args:
        count: of the numbers that are reduced.
        block: channels of one; 0 for those of a vector.
    """
    if not has_own_vectors(g):
        schedule_plainly(g, total)
        return
    block = block or _lanes(g, channels)
    several = block * next((many for many in (5, 4, 3, 2) if channels % (many * block) == 0), 1)
    lanes, outer, inner = min(block, g.natural_vector_size(hl.Float(32))), hl.Var("outer"), hl.Var("inner")
    g.output.split(c, outer, inner, several).vectorize(inner, lanes)
    share(g.output, outer, count)
    total.compute_at(g.output, outer).vectorize(c, lanes).unroll(c)
    total.update().reorder(c, *reach).vectorize(c, lanes).unroll(c)


def _lanes(g: hl.Generator, channels: int) -> int:
    """Of the widest vector that is no wider than there are channels."""
    return min(int(g.natural_vector_size(hl.Float(32))), 1 << (channels.bit_length() - 1))


def _schedule_blocks(g: hl.Generator, total: hl.Func, reach: tuple[hl.RVar, ...], shape: Size) -> None:
    """Sum a block of channels at some pixels in registers, and let each core read the weights of its own channels."""
    lanes = min(int(g.block), g.natural_vector_size(hl.Float(32)))
    # Some blocks of weights that lie one after the other; of one with more vectors than are summed at once, a part.
    each = int(g.block) // lanes
    counts = [(each if each <= _VECTORS else 1) * many for many in (1, 2, 4)]
    vectors = tuple(count for count in counts if count <= _VECTORS and shape[0] % (count * lanes) == 0)
    block = block_in_registers(g.target(), vectors, shape[1:], 4 * int(g.channels_in) * int(g.stride_columns))
    tasks = take_blocks(g.output, block.vectors * lanes, lanes, block, shape[0], hl.TailStrategy.Auto)
    share(g.output, tasks, math.prod(shape) * int(g.kernel_rows) * int(g.kernel_columns) * int(g.channels_in))
    total.compute_at(g.output, x).vectorize(c, lanes).unroll(c).unroll(x).unroll(y)
    total.update().reorder(c, x, y, *reach).vectorize(c, lanes).unroll(c).unroll(x).unroll(y)


def _activated(g: hl.Generator, value: hl.Expr) -> hl.Expr:
    name = str(g.activation)
    return _SLOPED[name](value, hl.f32(float(g.slope))) if name in _SLOPED else _ACTIVATIONS[name](value)


_OPERATIONS: dict[str, Callable[[hl.Expr, hl.Expr], hl.Expr]] = {
    "add": lambda first, second: first + second,
    "multiply": lambda first, second: first * second,
    "subtract": lambda first, second: first - second,
}
_SLOPED: dict[str, Callable[[hl.Expr, hl.Expr], hl.Expr]] = {
    "leaky_relu": lambda value, slope: hl.select(value > 0, value, slope * value),
    "elu": lambda value, slope: hl.select(value > 0, value, slope * (hl.exp(value) - 1.0)),
}
_ACTIVATIONS: dict[str, Callable[[hl.Expr], hl.Expr]] = {
    "none": lambda value: value,
    "relu": lambda value: hl.max(value, 0.0),
    "relu6": lambda value: hl.clamp(value, 0.0, 6.0),
    "sigmoid": lambda value: 1.0 / (1.0 + hl.exp(-value)),
    "tanh": hl.tanh,
    "silu": lambda value: value / (1.0 + hl.exp(-value)),
    "hard_swish": lambda value: value * hl.clamp(value + 3.0, 0.0, 6.0) / 6.0,
    # Hendrycks and Gimpel, Gaussian Error Linear Units (2016), section 2.
    "gelu": lambda value: 0.5 * value * (1.0 + hl.erf(value * hl.f32(0.5**0.5))),
    "gelu_tanh": lambda value: (
        0.5 * value * (1.0 + hl.tanh(hl.f32((2 / math.pi) ** 0.5) * (value + hl.f32(0.044715) * value * value * value)))
    ),
}

if __name__ == "__main__":
    hl.main()
