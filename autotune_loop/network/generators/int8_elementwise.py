"""The operators of quantised networks that look at each number or pixel alone; the rest is as in `int8_operators`."""

from __future__ import annotations

import math

import halide as hl
from rescaling import OF_RESCALING, add_scalars, estimate_scalars, multiply_rounded, rescaled, round_away, to_output
from windows import WIDTHS_OF_BYTES, c, fix, fix_output, has_own_vectors, in_vectors, take_rows, x, y

_I8, _I32 = hl.Int(8), hl.Int(32)
_OF_MULTIPLICATION = ("second_zero", *OF_RESCALING)
_OF_ADDITION = ("input_factor", "input_shift", "second_factor", "second_shift", *_OF_MULTIPLICATION)


class _Elementwise(hl.Generator):
    """What is done to each number of a picture, or to two of them."""

    rows = hl.GeneratorParam(56)
    columns = hl.GeneratorParam(56)
    channels_in = hl.GeneratorParam(64)


class _OfBytes(_Elementwise):
    input = hl.InputBuffer(_I8, 3)
    output = hl.OutputBuffer(_I8, 3)


class _OfTwo(_OfBytes):
    # The second input has one row and column.
    spreads = hl.GeneratorParam(False)


@hl.generator(name="int8_add")
class Int8Add(_OfTwo):
    """Both are brought to one scale with 20 more bits."""

    def configure(g) -> None:
        _configure_second(g, _OF_ADDITION)

    def generate(g) -> None:
        values = []
        for name, value in (("input", g.input[c, x, y]), ("second", _second(g))):
            wide = (hl.cast(_I32, value) - getattr(g, f"{name}_zero")) << 20
            values.append(multiply_rounded(g, wide, getattr(g, f"{name}_factor"), getattr(g, f"{name}_shift")))
        g.output[c, x, y] = rescaled(g, values[0] + values[1])
        _finish_elementwise(g, _OF_ADDITION)


@hl.generator(name="int8_multiply")
class Int8Multiply(_OfTwo):
    def configure(g) -> None:
        _configure_second(g, _OF_MULTIPLICATION)

    def generate(g) -> None:
        first = hl.cast(_I32, g.input[c, x, y]) - g.input_zero
        g.output[c, x, y] = rescaled(g, first * (hl.cast(_I32, _second(g)) - g.second_zero))
        _finish_elementwise(g, _OF_MULTIPLICATION)


@hl.generator(name="int8_rescale")
class Int8Rescale(_OfBytes):
    """Another scale and zero point, and what cuts off."""

    def configure(g) -> None:
        add_scalars(g, OF_RESCALING)

    def generate(g) -> None:
        g.output[c, x, y] = rescaled(g, hl.cast(_I32, g.input[c, x, y]) - g.input_zero)
        _finish_elementwise(g, OF_RESCALING)


@hl.generator(name="int8_lookup")
class Int8Lookup(_OfBytes):
    """Any function of one number: its values for −128 to 127."""

    def configure(g) -> None:
        g.add_input("values", hl.InputBuffer(_I8, 1))

    def generate(g) -> None:
        g.output[c, x, y] = g.values[hl.cast(_I32, g.input[c, x, y]) + 128]
        fix(g.values, (256,))
        _finish_elementwise(g, ())


@hl.generator(name="int8_softmax")
class Int8Softmax(hl.Generator):
    """Along the channels of each pixel. The powers are looked up: those of 0, −1, … −255 steps; their sum is a float,
    in the order of the channels."""

    channels_in = hl.GeneratorParam(1000)
    pixels = hl.GeneratorParam(1)

    input = hl.InputBuffer(_I8, 2)
    powers = hl.InputBuffer(hl.Float(32), 1)
    output_scale = hl.InputScalar(hl.Float(32))
    output = hl.OutputBuffer(_I8, 2)

    def configure(g) -> None:
        add_scalars(g, ("output_zero",))

    def generate(g) -> None:
        shape = (int(g.channels_in), int(g.pixels))
        reach = hl.RDom([(0, shape[0])])
        largest, total = hl.Func("largest"), hl.Func("total")
        largest[x] = hl.cast(_I8, -128)
        largest[x] = hl.max(largest[x], g.input[reach.x, x])
        power, each = (
            g.powers[hl.clamp(hl.cast(_I32, largest[x]) - hl.cast(_I32, g.input[at, x]), 0, 255)] for at in (c, reach.x)
        )
        total[x] = hl.f32(0)
        total[x] = hl.strict_float(total[x] + each)
        share = hl.strict_float(power * hl.strict_float(1.0 / hl.strict_float(total[x] * g.output_scale)))
        value = hl.cast(_I32, hl.floor(hl.strict_float(share + 0.5))) + g.output_zero
        g.output[c, x] = to_output(value, -128, 127)
        fix(g.input, shape)
        fix(g.powers, (256,))
        fix_output(g.output, shape)
        g.output_scale.set_estimate(1 / 256)
        estimate_scalars(g, ("output_zero",))
        if not g.using_autoscheduler():
            largest.compute_root()
            total.compute_root()
        if has_own_vectors(g):
            in_vectors(g.output, shape[0], WIDTHS_OF_BYTES)


@hl.generator(name="quantize")
class Quantize(_Elementwise):
    """Floats as bytes."""

    input = hl.InputBuffer(hl.Float(32), 3)
    scale = hl.InputScalar(hl.Float(32))
    output = hl.OutputBuffer(_I8, 3)

    def configure(g) -> None:
        add_scalars(g, ("output_zero",))

    def generate(g) -> None:
        steps = round_away(hl.strict_float(g.input[c, x, y] / g.scale))
        # Far from what a byte can be, and within what an integer can.
        value = hl.cast(_I32, hl.clamp(steps, -1024.0, 1024.0)) + g.output_zero
        g.output[c, x, y] = to_output(value, -128, 127)
        g.scale.set_estimate(1 / 256)
        _finish_elementwise(g, ("output_zero",))


@hl.generator(name="dequantize")
class Dequantize(_Elementwise):
    """Bytes as floats."""

    input = hl.InputBuffer(_I8, 3)
    scale = hl.InputScalar(hl.Float(32))
    output = hl.OutputBuffer(hl.Float(32), 3)

    def configure(g) -> None:
        add_scalars(g, ("input_zero",))

    def generate(g) -> None:
        g.output[c, x, y] = g.scale * hl.cast(hl.Float(32), hl.cast(_I32, g.input[c, x, y]) - g.input_zero)
        g.scale.set_estimate(1 / 256)
        _finish_elementwise(g, ("input_zero",))


def _configure_second(g: hl.Generator, scalars: tuple[str, ...]) -> None:
    g.add_input("second", hl.InputBuffer(_I8, 3))
    add_scalars(g, scalars)


def _second(g: hl.Generator) -> hl.Expr:
    shape = (int(g.channels_in), int(g.columns), int(g.rows))
    fix(g.second, (shape[0], 1, 1) if g.spreads else shape)
    return g.second[c, 0, 0] if g.spreads else g.second[c, x, y]


def _finish_elementwise(g: hl.Generator, scalars: tuple[str, ...]) -> None:
    shape = (int(g.channels_in), int(g.columns), int(g.rows))
    fix(g.input, shape)
    fix_output(g.output, shape)
    estimate_scalars(g, scalars)
    take_rows(g, g.output, shape[0], WIDTHS_OF_BYTES, math.prod(shape))


if __name__ == "__main__":
    hl.main()
