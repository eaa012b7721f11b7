"""The operators of quantised networks, each a generator: 8-bit integers in and out, 32-bit sums, bit for bit what
TensorFlow Lite's reference kernels compute.

What a tensor's numbers stand for (scale and zero point) is no parameter: it comes with each call, so that layers that
differ in nothing else are one pipeline. An activation that cuts off is a least and a largest output. What is outside a
picture is its zero point.
"""

from __future__ import annotations

import math

import halide as hl
from blocks import block_in_registers
from rescaling import (
    OF_OUTPUTS,
    OF_RESCALING,
    add_scalars,
    divide_rounded,
    estimate_scalars,
    multiply_rounded,
    multiply_rounded_once,
    rescaled,
    to_output,
)
from windows import (
    WIDTHS_OF_BYTES,
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

_I8, _I32 = hl.Int(8), hl.Int(32)
_OF_CHANNELS = ("bias", "sums", "factors", "shifts")
# Targets whose instruction sums products of unsigned and signed bytes.
_SUMS_OF_UNSIGNED = (
    hl.TargetFeature.AVXVNNI,
    hl.TargetFeature.AVX512_Zen4,
    hl.TargetFeature.AVX512_Zen5,
    hl.TargetFeature.AVX512_SapphireRapids,
)
# Pixels and channels of a depthwise convolution whose sums are in registers at once.
_PIXELS, _LANES = 4, 32
# So many vectors of sums of channels are in registers at once.
_VECTORS = 4


class _Products(hl.Generator):
    """A sum of products with weights that are packed once, by who builds the network.

    `depth` channels in of one channel out lie side by side, as instructions for sums of products take them: 4 of 8
    bits, or 2 where a target multiplies in 16 bits. So those of `block` channels out do. What is missing in either is
    0. `sums` are those of a channel's weights, by which the zero point of the input is taken out:
    Σ w·(x − z) = Σ w·x − z·Σ w.
    """

    channels_out = hl.GeneratorParam(64)
    depth = hl.GeneratorParam(4)
    block = hl.GeneratorParam(16)


@hl.generator(name="int8_convolution")
class Int8Convolution(Windowed, _Products):
    groups = hl.GeneratorParam(1)
    # A dense layer of each pixel does.
    rounds_once = hl.GeneratorParam(False)

    input = hl.InputBuffer(_I8, 3)
    weights = hl.InputBuffer(_I8, 6)
    output = hl.OutputBuffer(_I8, 3)

    def configure(g) -> None:
        _configure_reduction(g)

    def generate(g) -> None:
        channels, depth, block = int(g.channels_out), int(g.depth), int(g.block)
        each_in, each_out = int(g.channels_in) // int(g.groups), channels // int(g.groups)
        window, steps = Window(g, int(g.channels_in)), _up(each_in, depth)
        reach = hl.RDom([(0, depth), (0, steps), (0, window.kernel[0]), (0, window.kernel[1])])
        lane, step, across, along = reach.x, reach.y, reach.z, reach.w
        operand, offset = _operand(g, _padded(g.input, window, g.input_zero, steps * depth > each_in))
        first = (c / each_out) * each_in if int(g.groups) > 1 else 0
        taken = operand[(first + step * depth + lane, *window.place(across, along))]
        total = _begun(g, (c, x, y), offset)
        weight = g.weights[lane, c % block, step, across, along, c / block]
        total[c, x, y] += hl.cast(_I32, weight) * hl.cast(_I32, taken)
        fix(g.input, window.source)
        fix(g.weights, (depth, block, steps, *window.kernel, _up(channels, block)))
        _finish_reduction(g, total, (channels, *window.size), bool(g.rounds_once))
        _schedule_sums(g, total, operand, reach, (channels, *window.size))


@hl.generator(name="int8_depthwise_convolution")
class Int8DepthwiseConvolution(Windowed):
    multiplier = hl.GeneratorParam(1)

    input = hl.InputBuffer(_I8, 3)
    # Of each channel in the channels out that it is multiplied to.
    weights = hl.InputBuffer(_I8, 3)
    output = hl.OutputBuffer(_I8, 3)

    def configure(g) -> None:
        _configure_reduction(g)

    def generate(g) -> None:
        channels, multiplier = int(g.channels_in), int(g.multiplier)
        window = Window(g, channels)
        reach = hl.RDom([(0, window.kernel[0]), (0, window.kernel[1])])
        padded = _padded(g.input, window, g.input_zero)
        taken = padded[(c if multiplier == 1 else c / multiplier, *window.place(reach.x, reach.y))]
        total = _begun(g, (c, x, y), 0)
        total[c, x, y] += hl.cast(_I32, g.weights[c, reach.x, reach.y]) * hl.cast(_I32, taken)
        fix(g.input, window.source)
        fix(g.weights, (channels * multiplier, *window.kernel))
        _finish_reduction(g, total, (channels * multiplier, *window.size), False)
        _schedule_strips(g, total, padded, reach, (channels * multiplier, *window.size))


@hl.generator(name="int8_dense")
class Int8Dense(_Products):
    channels_in = hl.GeneratorParam(512)

    input = hl.InputBuffer(_I8, 1)
    weights = hl.InputBuffer(_I8, 4)
    output = hl.OutputBuffer(_I8, 1)

    def configure(g) -> None:
        _configure_reduction(g)

    def generate(g) -> None:
        channels_in, channels, depth, block = int(g.channels_in), int(g.channels_out), int(g.depth), int(g.block)
        steps = _up(channels_in, depth)
        reach = hl.RDom([(0, depth), (0, steps)])
        source = g.input
        if steps * depth > channels_in:
            source = hl.BoundaryConditions.constant_exterior(g.input, hl.cast(_I8, 0), [(0, channels_in)])
        operand, offset = _operand(g, source)
        total = _begun(g, (c,), offset)
        weight = g.weights[reach.x, c % block, reach.y, c / block]
        total[c] += hl.cast(_I32, weight) * hl.cast(_I32, operand[reach.y * depth + reach.x])
        fix(g.input, (channels_in,))
        fix(g.weights, (depth, block, steps, _up(channels, block)))
        _finish_reduction(g, total, (channels,), True)
        _schedule_sums(g, total, operand, reach, (channels,))


@hl.generator(name="int8_pool")
class Int8Pool(Windowed):
    is_max = hl.GeneratorParam(True)

    input = hl.InputBuffer(_I8, 3)
    output = hl.OutputBuffer(_I8, 3)

    def configure(g) -> None:
        add_scalars(g, ("low", "high"))

    def generate(g) -> None:
        window = Window(g, int(g.channels_in))
        reach = hl.RDom([(0, window.kernel[0]), (0, window.kernel[1])])
        padded = _padded(g.input, window, -128 if g.is_max else 0)
        taken = padded[(c, *window.place(reach.x, reach.y))]
        total = hl.Func("total")
        if g.is_max:
            total[c, x, y] = hl.cast(_I8, -128)
            total[c, x, y] = hl.max(total[c, x, y], taken)
            value = hl.cast(_I32, total[c, x, y])
        else:
            # What is outside does not count.
            total[c, x, y] = hl.cast(_I32, 0)
            total[c, x, y] += hl.cast(_I32, taken)
            value = divide_rounded(total[c, x, y], window.inside())
        g.output[c, x, y] = to_output(value, g.low, g.high)
        fix(g.input, window.source)
        fix_output(g.output, (int(g.channels_in), *window.size))
        estimate_scalars(g, ("low", "high"))
        _schedule_strips(g, total, padded, reach, (int(g.channels_in), *window.size))


@hl.generator(name="int8_global_pool")
class Int8GlobalPool(hl.Generator):
    """The mean is rescaled from the sum: who calls it divides the factor by the number of pixels."""

    rows = hl.GeneratorParam(7)
    columns = hl.GeneratorParam(7)
    channels_in = hl.GeneratorParam(512)
    is_max = hl.GeneratorParam(False)

    input = hl.InputBuffer(_I8, 3)
    output = hl.OutputBuffer(_I8, 1)

    def configure(g) -> None:
        add_scalars(g, OF_RESCALING)

    def generate(g) -> None:
        rows, columns = int(g.rows), int(g.columns)
        reach, total = hl.RDom([(0, columns), (0, rows)]), hl.Func("total")
        value = hl.cast(_I32, g.input[c, reach.x, reach.y])
        total[c] = hl.cast(_I32, -128 if g.is_max else 0)
        total[c] = hl.max(total[c], value) if g.is_max else total[c] + value
        pixels = 1 if g.is_max else rows * columns
        g.output[c] = rescaled(g, total[c] - g.input_zero * pixels)
        fix(g.input, (int(g.channels_in), columns, rows))
        fix_output(g.output, (int(g.channels_in),))
        estimate_scalars(g, OF_RESCALING)
        if not has_own_vectors(g):
            schedule_plainly(g, total)
            return
        _take_vectors(g.output, total, min(_LANES, int(g.channels_in)))
        total.update().reorder(c, reach.x, reach.y).vectorize(c)


def _up(number: int, of: int) -> int:
    """How many of a size hold a number of things."""
    return -(-number // of)


def _padded(source: hl.Func, window: Window, outside: hl.Expr | int, always: bool = False) -> hl.Func:
    """The picture with what is outside, of which there may be channels, too."""
    if not any(map(any, window.pads)) and not always:
        return source
    bounds = [(0, extent) for extent in window.source]
    return hl.BoundaryConditions.constant_exterior(source, hl.cast(_I8, outside), bounds)


def _operand(g: hl.Generator, source: hl.Func) -> tuple[hl.Func, int]:
    """What the weights are multiplied with, as the target's instructions take it, and how much more than the source."""
    target, operand = g.target(), hl.Func("operand")
    place = (c, x, y)[: source.dimensions()]
    value, offset = source[place], 0
    if any(target.has_feature(feature) for feature in _SUMS_OF_UNSIGNED):
        value, offset = hl.cast(hl.UInt(8), value) ^ hl.cast(hl.UInt(8), 128), 128
    elif target.arch == hl.TargetArch.X86:
        value = hl.cast(hl.Int(16), value)
    operand[place] = value
    return operand, offset


def _configure_reduction(g: hl.Generator) -> None:
    for name in _OF_CHANNELS:
        g.add_input(name, hl.InputBuffer(_I32, 1))
    add_scalars(g, OF_OUTPUTS)


def _begun(g: hl.Generator, place: tuple[hl.Var, ...], offset: int) -> hl.Func:
    """A sum before its first product."""
    total = hl.Func("total")
    total[place] = g.bias[c] - (g.input_zero + offset) * g.sums[c]
    return total


def _finish_reduction(g: hl.Generator, total: hl.Func, shape: Size, rounds_once: bool) -> None:
    place = (c, x, y)[: len(shape)]
    multiply = multiply_rounded_once if rounds_once else multiply_rounded
    value = multiply(g, total[place], g.factors[c], g.shifts[c])
    g.output[place] = to_output(value + g.output_zero, g.low, g.high)
    for name in _OF_CHANNELS:
        fix(getattr(g, name), shape[:1])
    fix_output(g.output, shape)
    estimate_scalars(g, OF_OUTPUTS)


def _take_vectors(output: hl.Func, total: hl.Func, lanes: int) -> hl.Var:
    """Make vectors of channels, each reduced where it is needed; the loop over them is returned."""
    outer, inner = hl.Var("outer"), hl.Var("inner")
    output.split(c, outer, inner, lanes, hl.TailStrategy.GuardWithIf).vectorize(inner)
    total.compute_at(output, outer).vectorize(c)
    return outer


def _schedule_sums(g: hl.Generator, total: hl.Func, operand: hl.Func, reach: hl.RDom, shape: Size) -> None:
    """A lane sums `depth` products at once; a block of channels is summed in registers at some pixels, and each core
    reads the weights of its own channels."""
    if not g.using_autoscheduler():
        operand.compute_root()
    if not has_own_vectors(g):
        schedule_plainly(g, total)
        return
    taken = _up(int(g.channels_in), int(g.depth)) * int(g.depth)
    lanes, output, sums = min(int(g.block), shape[0]), g.output, total.update()
    if len(shape) == 1:
        in_vectors(operand, taken, WIDTHS_OF_BYTES)
        vectors = _take_vectors(output, total, lanes)
        share(output, vectors, shape[0] * _up(taken, int(g.depth)))
        sums.atomic().vectorize(reach.x).vectorize(c)
        return
    take_rows(g, operand, taken, WIDTHS_OF_BYTES, int(g.rows) * int(g.columns) * taken)
    # Whole blocks of weights, which may be more than one vector.
    each = -(-lanes // g.natural_vector_size(_I32))
    counts = [1, *(count for count in (2, 4) if each * count <= _VECTORS and shape[0] % (count * int(g.block)) == 0)]
    pixel_bytes = int(g.channels_in) * int(g.stride_columns) * operand.type().bytes()
    block = block_in_registers(g.target(), tuple(each * count for count in counts), shape[1:], pixel_bytes)
    tasks = take_blocks(output, block.vectors // each * lanes, lanes, block, shape[0], hl.TailStrategy.GuardWithIf)
    window = int(g.kernel_rows) * int(g.kernel_columns)
    share(output, tasks, math.prod(shape) * window * _up(taken, int(g.depth)))
    total.compute_at(output, x).vectorize(c, lanes).unroll(c).unroll(x).unroll(y)
    sums.reorder(reach.x, c, x, y, reach.y, reach.z, reach.w).unroll(x).unroll(y)
    sums.atomic().vectorize(reach.x).vectorize(c, lanes).unroll(c)


def _schedule_strips(g: hl.Generator, total: hl.Func, padded: hl.Func, reach: hl.RDom, shape: Size) -> None:
    """Sum a vector of channels at some pixels of a row; a core takes strips of rows, padded as they are needed."""
    if not has_own_vectors(g):
        schedule_plainly(g, total)
        return
    channels, width, height = shape
    lanes, rows = min(_LANES, channels), rows_of_strip(height, channels * width * int(g.stride_rows))
    outer, strip = take_strips(g.output, lanes, lanes, (_PIXELS, width), rows, hl.TailStrategy.GuardWithIf)
    share(g.output, strip, math.prod(shape) * int(g.kernel_rows) * int(g.kernel_columns))
    total.compute_at(g.output, outer).vectorize(c).unroll(x)
    total.update().reorder(c, x, reach.x, reach.y, y).vectorize(c).unroll(x)
    if padded is not g.input:
        padded.compute_at(g.output, strip).vectorize(padded.args()[0], lanes)


if __name__ == "__main__":
    hl.main()
