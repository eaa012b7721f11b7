"""The arithmetic of quantised operators in Halide, bit for bit that of TensorFlow Lite's reference kernels.

A real number is a factor of 31 bits behind the point and a shift to the left (Jacob et al., Quantization and Training
of Neural Networks for Efficient Integer-Arithmetic-Only Inference, 2018, section 2.2). Generators import it as the
module beside them.
"""

from __future__ import annotations

import halide as hl

# Zero points, and the least and the largest output.
OF_OUTPUTS = ("input_zero", "output_zero", "low", "high")
OF_RESCALING = ("factor", "shift", *OF_OUTPUTS)
# What scalars are while a generator is tuned, so that outputs differ from one another; others are 0.
_ESTIMATES = {"low": -128, "high": 127}
_FACTOR = 1 << 30


def add_scalars(g: hl.Generator, names: tuple[str, ...]) -> None:
    """Numbers of 32 bits that come with each call."""
    for name in names:
        g.add_input(name, hl.InputScalar(hl.Int(32)))


def estimate_scalars(g: hl.Generator, names: tuple[str, ...]) -> None:
    """What they are while the generator is tuned."""
    for name in names:
        getattr(g, name).set_estimate(_FACTOR if name.endswith("factor") else _ESTIMATES.get(name, 0))


def multiply_rounded(g: hl.Generator, value: hl.Expr, factor: hl.Expr, shift: hl.Expr) -> hl.Expr:
    """value · factor · 2^(shift − 31): the product is rounded to the nearest, up in the middle; what is then shifted to
    the right is rounded again, away from zero in the middle.

    Shifts are kept within 31 bits, so that no file's numbers make what Halide does not define.
    """
    left = hl.cast(hl.UInt(32), hl.clamp(shift, 0, 30))
    right = hl.cast(hl.UInt(32), hl.clamp(-shift, 0, 31))
    product = _multiply_high(g.target(), value << left, factor)
    mask = hl.cast(hl.Int(32), (hl.cast(hl.UInt(32), 1) << right) - 1)
    threshold = (mask >> 1) + hl.select(product < 0, 1, 0)
    return (product >> right) + hl.select((product & mask) > threshold, 1, 0)


def _multiply_high(target: hl.Target, value: hl.Expr, factor: hl.Expr) -> hl.Expr:
    """value · factor · 2^−31, rounded to the nearest, up in the middle; a factor is never the least of all integers."""
    if target.arch == hl.TargetArch.ARM:  # which has an instruction for it
        return hl.rounding_mul_shift_right(value, factor, hl.cast(hl.UInt(32), 31))
    whole = hl.cast(hl.Int(64), value) * hl.cast(hl.Int(64), factor) + (1 << 30)
    # As a number without a sign it is shifted at once; Halide takes the sum apart before it shifts one with a sign.
    return hl.cast(hl.Int(32), hl.cast(hl.UInt(64), whole) >> 31)


def multiply_rounded_once(g: hl.Generator, value: hl.Expr, factor: hl.Expr, shift: hl.Expr) -> hl.Expr:
    """The same with a product of 64 bits that is shifted as a whole, and rounded up in the middle."""
    right = hl.cast(hl.UInt(64), 31 - hl.clamp(shift, -31, 30))
    product = hl.cast(hl.Int(64), value) * hl.cast(hl.Int(64), factor)
    return hl.cast(hl.Int(32), (product + (hl.cast(hl.Int(64), 1) << (right - 1))) >> right)


def rescaled(g: hl.Generator, value: hl.Expr) -> hl.Expr:
    """What a generator that takes OF_RESCALING makes of a sum."""
    return to_output(multiply_rounded(g, value, g.factor, g.shift) + g.output_zero, g.low, g.high)


def to_output(value: hl.Expr, low: hl.Expr, high: hl.Expr) -> hl.Expr:
    """A sum as an output."""
    return hl.cast(hl.Int(8), hl.clamp(value, low, high))


def divide_rounded(value: hl.Expr, count: hl.Expr) -> hl.Expr:
    """value ÷ count, away from zero in the middle."""
    half = count / 2
    return hl.select(value > 0, (value + half) / count, -((half - value) / count))


def round_away(value: hl.Expr) -> hl.Expr:
    """A float's nearest integer, away from zero in the middle; exact, as `value + 0.5` is not."""
    whole = hl.trunc(value)
    return whole + hl.select(hl.abs(value - whole) >= 0.5, hl.select(value < 0, -1.0, 1.0), 0.0)
