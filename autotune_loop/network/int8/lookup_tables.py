"""Activations of bytes as tables of their 256 outputs: those of TensorFlow Lite's reference kernels, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.int8.fixed_point import (
    LARGEST,
    LEAST,
    divide_by_power,
    fixed_point,
    multiply_rounded,
    of_activation,
    single,
)
from halide_autotune.autotune_loop.network.operators import Activation, Quantization

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_LEAST16, _LARGEST16 = -(1 << 15), (1 << 15) - 1


def lookup_table(activation: Activation, slope: float, source: Quantization, output: Quantization) -> Array:
    """An activation's outputs for −128 to 127.

    Args:
        slope: of leaky_relu.
    """
    import numpy

    steps = range(LEAST - source.zero_point, LARGEST + 1 - source.zero_point)
    if activation is Activation.LEAKY_RELU:
        made = numpy.array(_leaky_relu(steps, slope, source, output))
    elif activation is Activation.HARD_SWISH:
        made = numpy.array(_hard_swish(steps, source, output))
    else:
        made = _of_floats(_FUNCTIONS[activation], steps, source, output)
    with numpy.errstate(invalid="ignore"):
        found: Array = numpy.clip(made + output.zero_point, LEAST, LARGEST).astype(numpy.int8)
    return found


def _leaky_relu(steps: range, slope: float, source: Quantization, output: Quantization) -> list[int]:
    below = fixed_point(single(single(source.scale * slope) / output.scale))
    above = of_activation(source, output)
    return [multiply_rounded(step, above if step >= 0 else below) for step in steps]


def _hard_swish(steps: range, source: Quantization, output: Quantization) -> list[int]:
    """x · relu6(x + 3) ÷ 6 in numbers of 16 bits: x on the scale of the output times a share, which is 1 from 3 on."""
    fine = single(source.scale / 128)
    of_output, shift = _of_16_bits(single(fine / output.scale))
    of_share, share_shift = _of_16_bits(single(fine / single(3 / (1 << 15))))
    made = []
    for step in steps:
        value = step << 7
        share = value if share_shift <= 0 else _saturated(value << share_shift - 1)
        share = _high(share, of_share)
        # The last bit alone saturates where it matters.
        share = _saturated(share << 1) if share_shift > 0 else divide_by_power(share, -share_shift)
        share = (share + (1 << 15)) >> 1
        product = share * _high(value, of_output)
        # Towards zero.
        product = product >> 15 if product >= 0 else -(-product >> 15)
        # Where it would be to the left, TensorFlow Lite refuses the file.
        made.append(divide_by_power(product, max(-shift, 0)))
    return made


def _of_16_bits(real: float) -> tuple[int, int]:
    """A factor of 15 bits behind the point, and a shift to the left."""
    factor, shift = fixed_point(real)
    return min((factor + (1 << 15)) >> 16, _LARGEST16), shift


def _high(value: int, factor: int) -> int:
    """value · factor ÷ 2^15, up in the middle."""
    return (value * factor + (1 << 14)) >> 15


def _saturated(value: int) -> int:
    return min(max(value, _LEAST16), _LARGEST16)


def _of_floats(function: Callable[[Array], Array], steps: range, source: Quantization, output: Quantization) -> Array:
    """Any function, computed in 32-bit floats and rounded away from zero in the middle."""
    import numpy

    with numpy.errstate(over="ignore", invalid="ignore"):
        real = numpy.float32(source.scale) * numpy.array(steps, numpy.float32)
        made = function(real) * numpy.float32(single(1 / output.scale))
        found: Array = numpy.trunc(made + numpy.copysign(numpy.float32(0.5), made))
    return found


def _sigmoid(real: Array) -> Array:
    import numpy

    made: Array = 1 / (1 + numpy.exp(-real))
    return made


def _tanh(real: Array) -> Array:
    import numpy

    made: Array = numpy.tanh(real)
    return made


def _gelu(real: Array) -> Array:
    import numpy

    half = numpy.float32(-(0.5**0.5))
    powers = numpy.array([math.erfc(each) for each in (real * half).tolist()], numpy.float32)
    made: Array = numpy.float32(0.5) * real * powers
    return made


def _gelu_tanh(real: Array) -> Array:
    import numpy

    inner = numpy.float32((2 / math.pi) ** 0.5) * (real + numpy.float32(0.044715) * real * real * real)
    made: Array = numpy.float32(0.5) * real * (1 + numpy.tanh(inner))
    return made


_FUNCTIONS: Mapping[Activation, Callable[[Array], Array]] = {
    Activation.SIGMOID: _sigmoid,
    Activation.TANH: _tanh,
    Activation.GELU: _gelu,
    Activation.GELU_TANH: _gelu_tanh,
}
