"""What the generators of quantised operators take beside what operators pass on: packed weights, and numbers that turn
a sum into an output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.int8 import fixed_point
from halide_autotune.autotune_loop.network.int8.fixed_point import FixedPoint
from halide_autotune.autotune_loop.network.int8.lookup_tables import lookup_table
from halide_autotune.autotune_loop.network.operators import (
    LOOKED_UP,
    OF_TWO,
    REDUCTIONS,
    Activation,
    Operator,
    OperatorKind,
    Quantization,
    Tensor,
)

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

# Features of a Halide target that sums four products of bytes in one instruction.
_SUMS_OF_FOUR = {"arm_dot_prod", "avx512_sapphirerapids", "avx512_zen4", "avx512_zen5", "avxvnni", "hvx"}
# A factor and a shift that leave a number as it is.
_IDENTITY = FixedPoint(1 << 30, 1)


@dataclass(frozen=True)
class Int8Constant:
    """A constant of a model; a bias has no scale.

    Attributes:
        data: weights with their channels out first; of a depthwise convolution with a dimension of 1 before the
            window and the channels out last.
        scales: one, or one of each channel out.
    """

    data: Array
    scales: Array
    zero_points: Array


@dataclass(frozen=True)
class PackedLayout:
    """How the bytes of a convolution's or dense layer's weights lie.

    Attributes:
        depth: channels in side by side.
        block: channels out side by side, each with its `depth`.
    """

    depth: int = 4
    block: int = 16


def packed_layout(halide_target: str) -> PackedLayout:
    """The layout whose products a target sums with the fewest instructions."""
    has_sums = not _SUMS_OF_FOUR.isdisjoint(halide_target.split("-"))
    return PackedLayout(depth=4 if has_sums else 2)


def int8_inputs(operator: Operator, constants: Sequence[Int8Constant], layout: PackedLayout) -> tuple[Array, ...]:
    """In the order in which the generator takes them; numbers are arrays without a dimension.

    Args:
        constants: weights before the bias.
    """
    if operator.kind in REDUCTIONS:
        return _of_reduction(operator, constants, layout)
    if operator.kind in OF_TWO:
        return _of_two(operator, constants)
    source, output = _known(operator.inputs[0]), _known(operator.output)
    if operator.kind is OperatorKind.SOFTMAX:
        return (fixed_point.powers(source), _float(output.scale), *_integers(output.zero_point))
    if operator.kind is OperatorKind.POOL:
        return _integers(*fixed_point.limits(operator.activation, output))
    if operator.kind is OperatorKind.GLOBAL_POOL:
        rows, columns, _ = operator.inputs[0].shape
        is_max = bool(operator.settings["is_max"])
        rescaled = _IDENTITY if is_max else fixed_point.of_mean(source, output, rows * columns)
        return _rescaling(rescaled, source, output, Activation.NONE)
    if operator.kind is OperatorKind.RESCALE:
        return _rescaling(fixed_point.of_change(source, output), source, output, Activation.NONE)
    if operator.kind is OperatorKind.ACTIVATION:
        if operator.activation in LOOKED_UP:
            return (lookup_table(operator.activation, operator.slope, source, output),)
        return _rescaling(fixed_point.of_activation(source, output), source, output, operator.activation)
    return _integers(output.zero_point) if operator.kind is OperatorKind.PAD else ()


def quantize_inputs(operator: Operator) -> tuple[Array, ...]:
    """Of an operator from floats to bytes or back."""
    bytes_of = _known(operator.output if operator.kind is OperatorKind.QUANTIZE else operator.inputs[0])
    return (_float(bytes_of.scale), *_integers(bytes_of.zero_point))


def packed(weights: Array, layout: PackedLayout) -> Array:
    """Weights as convolutions and dense layers take them: blocks of channels out, window, steps of channels in,
    channels out of a block, channels in of a step; what is missing is 0.

    Args:
        weights: channels out, window, channels in.
    """
    import numpy

    channels, *window, channels_in = weights.shape
    blocks, steps = -(-channels // layout.block), -(-channels_in // layout.depth)
    missing = [
        (0, blocks * layout.block - channels),
        *((0, 0) for _ in window),
        (0, steps * layout.depth - channels_in),
    ]
    whole = numpy.pad(weights, missing).reshape(blocks, layout.block, *window, steps, layout.depth)
    return numpy.ascontiguousarray(numpy.moveaxis(whole, 1, -2))


def _of_reduction(operator: Operator, constants: Sequence[Int8Constant], layout: PackedLayout) -> tuple[Array, ...]:
    import numpy

    weights, channels = constants[0].data, operator.output.shape[-1]
    source, output = _known(operator.inputs[0]), _known(operator.output)
    bias = constants[1].data if len(constants) > 1 else None
    if operator.kind is OperatorKind.DEPTHWISE_CONVOLUTION:
        laid, sums = numpy.ascontiguousarray(weights[0]), weights.sum((0, 1, 2), numpy.int32)
    else:
        # A dense layer of each pixel is a convolution.
        is_of_pixels = operator.kind is OperatorKind.CONVOLUTION and weights.ndim == 2
        laid = packed(weights[:, None, None] if is_of_pixels else weights, layout)
        sums = weights.reshape(channels, -1).sum(1, numpy.int32)
    of_each = len(constants[0].scales) > 1 or operator.kind in _SCALED_BY_CHANNEL
    factor = fixed_point.of_product if of_each else fixed_point.of_single_product
    scales = numpy.broadcast_to(constants[0].scales, channels)
    points = [factor(source, float(scale), output) for scale in scales]
    return (
        laid,
        numpy.zeros(channels, numpy.int32) if bias is None else numpy.ascontiguousarray(bias, numpy.int32),
        sums,
        numpy.array([point.factor for point in points], numpy.int32),
        numpy.array([point.shift for point in points], numpy.int32),
        *_integers(source.zero_point, output.zero_point, *fixed_point.limits(operator.activation, output)),
    )


# Their scales are multiplied in double precision even where all weights have one.
_SCALED_BY_CHANNEL = (OperatorKind.CONVOLUTION, OperatorKind.DEPTHWISE_CONVOLUTION)


def _of_two(operator: Operator, constants: Sequence[Int8Constant]) -> tuple[Array, ...]:
    import numpy

    first, output = _known(operator.inputs[0]), _known(operator.output)
    given: tuple[Array, ...] = ()
    if len(operator.inputs) == 2:
        second = _known(operator.inputs[1])
    else:
        second = Quantization(float(constants[0].scales[0]), int(constants[0].zero_points[0]))
        channels = operator.output.shape[-1]
        given = (
            numpy.ascontiguousarray(numpy.broadcast_to(constants[0].data.reshape(-1), channels)).reshape(
                1, 1, channels
            ),
        )
    if operator.kind is OperatorKind.MULTIPLY:
        *terms, whole = [fixed_point.of_multiplication(first, second, output)]
    else:
        *terms, whole = fixed_point.of_addition(first, second, output)
    if operator.kind is OperatorKind.SUBTRACT:
        subtracted = 0 if operator.settings["reverses"] else 1
        terms[subtracted] = FixedPoint(-terms[subtracted].factor, terms[subtracted].shift)
    numbers = [number for term in terms for number in term]
    return (
        *given,
        *_integers(*numbers, second.zero_point),
        *_rescaling(whole, first, output, operator.activation),
    )


def _rescaling(
    point: FixedPoint, source: Quantization, output: Quantization, activation: Activation
) -> tuple[Array, ...]:
    limits = fixed_point.limits(activation, output)
    return _integers(point.factor, point.shift, source.zero_point, output.zero_point, *limits)


def _known(tensor: Tensor) -> Quantization:
    assert tensor.quantization is not None
    return tensor.quantization


def _integers(*numbers: int) -> tuple[Array, ...]:
    import numpy

    return tuple(numpy.array(number, numpy.int32) for number in numbers)


def _float(number: float) -> Array:
    import numpy

    return numpy.array(number, numpy.float32)
