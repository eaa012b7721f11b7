"""The integers that stand for real numbers in quantised operators, as TensorFlow Lite works them out before it runs.

A real number is a factor of 31 bits behind the point times a power of two (Jacob et al., Quantization and Training of
Neural Networks for Efficient Integer-Arithmetic-Only Inference, 2018, section 2.2). Where TensorFlow Lite computes in
32-bit floats, so does this.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from halide_autotune.autotune_loop.network.operators import Activation, Quantization

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_BITS = 31
# How far an addition's terms are shifted to the left before they are brought to one scale.
_ADDITION_SHIFT = 20
LEAST, LARGEST = -128, 127


class FixedPoint(NamedTuple):
    """factor · 2^(shift − 31)."""

    factor: int
    shift: int


def fixed_point(real: float) -> FixedPoint:
    """The nearest to a number; 0 for what is too small for any output to show, or too large."""
    if not 0 < abs(real) < 1 << _BITS:
        return FixedPoint(0, 0)
    fraction, shift = math.frexp(abs(real))
    factor = math.floor(fraction * (1 << _BITS) + 0.5)
    if factor == 1 << _BITS:
        factor, shift = factor // 2, shift + 1
    return FixedPoint(int(math.copysign(factor, real)), shift) if -_BITS <= shift < _BITS else FixedPoint(0, 0)


def of_product(source: Quantization, weight_scale: float, output: Quantization) -> FixedPoint:
    """From a sum of products to its output."""
    return fixed_point(source.scale * weight_scale / output.scale)


def of_single_product(source: Quantization, weight_scale: float, output: Quantization) -> FixedPoint:
    """The same where all weights of a dense layer have one scale."""
    return fixed_point(single(source.scale * weight_scale) / output.scale)


def of_multiplication(first: Quantization, second: Quantization, output: Quantization) -> FixedPoint:
    """From a product of two numbers to its output."""
    return fixed_point(single(single(first.scale * second.scale) / output.scale))


def of_change(source: Quantization, output: Quantization) -> FixedPoint:
    """From one scale to another."""
    return fixed_point(source.scale / output.scale)


def of_activation(source: Quantization, output: Quantization) -> FixedPoint:
    """The same where it is an activation's."""
    return fixed_point(single(source.scale / output.scale))


def of_mean(source: Quantization, output: Quantization, count: int) -> FixedPoint:
    """From a sum of so many numbers to their mean."""
    factor, shift = of_change(source, output)
    # The count's bits make up for what the division takes from the factor.
    more = min(count.bit_length() - 1, 32, _BITS + shift)
    return FixedPoint((factor << more) // count, shift - more)


def of_addition(first: Quantization, second: Quantization, output: Quantization) -> tuple[FixedPoint, ...]:
    """For the first term, for the second, and for their sum."""
    twice = 2 * max(first.scale, second.scale)
    whole = (1 << _ADDITION_SHIFT) * output.scale
    return fixed_point(first.scale / twice), fixed_point(second.scale / twice), fixed_point(twice / whole)


def multiply_rounded(value: int, point: FixedPoint) -> int:
    """value · point, as the generators' `multiply_rounded`, where nothing overflows."""
    product = ((value << max(point.shift, 0)) * point.factor + (1 << _BITS - 1)) >> _BITS
    return divide_by_power(product, max(-point.shift, 0))


def divide_by_power(value: int, exponent: int) -> int:
    """value ÷ 2^exponent, away from zero in the middle."""
    half = 1 << exponent >> 1
    return (value + half) >> exponent if value >= 0 else -((half - value) >> exponent)


def limits(activation: Activation, output: Quantization) -> tuple[int, int]:
    """The least and the largest output that an activation leaves."""
    low, high = LEAST, LARGEST
    if activation in (Activation.RELU, Activation.RELU6):
        low = max(low, _quantized(0.0, output))
    if activation is Activation.RELU6:
        high = min(high, _quantized(6.0, output))
    return low, high


def _quantized(real: float, output: Quantization) -> int:
    steps = min(single(real / output.scale), float(LARGEST - LEAST))
    return output.zero_point + math.floor(steps + 0.5)


def single(real: float) -> float:
    """The nearest 32-bit float."""
    import numpy

    with numpy.errstate(over="ignore"):
        return float(numpy.float32(real))


def powers(source: Quantization) -> Array:
    """e^−x for 0 to 255 steps, for softmax."""
    import numpy

    with numpy.errstate(over="ignore"):
        steps = numpy.float32(-source.scale) * numpy.arange(256, dtype=numpy.float32)
    found: Array = numpy.exp(steps.astype(numpy.float64)).astype(numpy.float32)
    return found
