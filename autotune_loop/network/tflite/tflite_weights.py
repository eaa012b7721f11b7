"""What a `.tflite` network's operators compute with, as their generators take it: floats as Keras's, bytes packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.int8.int8_weights import (
    Int8Constant,
    PackedLayout,
    int8_inputs,
    quantize_inputs,
)
from halide_autotune.autotune_loop.network.operators import REDUCTIONS, ElementType, Network, Operator, OperatorKind
from halide_autotune.autotune_loop.network.tflite.dilation import with_dilation
from halide_autotune.autotune_loop.network.tflite.tflite_file import TfliteTensor, open_tflite, place_names

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]
    # The code of a file's operator, and what it takes.
    Source = tuple[str, Sequence[TfliteTensor]]


def tflite_weights(path: Path, network: Network, layout: PackedLayout | None = None) -> list[tuple[Array, ...]]:
    """What each operator's generator takes beside what operators pass on, in its order; numbers are arrays without a
    dimension.

    Args:
        network: what `read_tflite` has read of the file.
        layout: of the weights of bytes; None for the generators' own.

    Raises:
        NetworkError: the file cannot be read.
    """
    file = with_dilation(open_tflite(path))
    sources: dict[str, Source] = {}
    for name, each in zip(place_names(file), file.operators, strict=True):
        sources[name] = (each.code, [file.tensors[place] for place in each.inputs if place >= 0])
    return [_weights(each, sources, layout or PackedLayout()) for each in network.operators]


def _weights(operator: Operator, sources: Mapping[str, Source], layout: PackedLayout) -> tuple[Array, ...]:
    found = [sources[place] for place in operator.places]
    if operator.kind in (OperatorKind.QUANTIZE, OperatorKind.DEQUANTIZE):
        return quantize_inputs(operator)
    if operator.output.element is ElementType.INT8:
        # Only padding is done in another operator, which comes after it.
        constants = [
            Int8Constant(each.data, each.scales, each.zero_points) for each in found[-1][1] if each.data is not None
        ]
        return int8_inputs(operator, constants, layout)
    return _float_weights(operator, found)


def _float_weights(operator: Operator, sources: Sequence[Source]) -> tuple[Array, ...]:
    """Scales that follow a sum of products are folded into its weights."""
    import numpy

    if operator.kind not in (*REDUCTIONS, OperatorKind.SCALE):
        return ()
    channels = operator.output.shape[-1]
    factors, offsets = numpy.ones(channels), numpy.zeros(channels)
    weights: Array | None = None
    for code, taken in sources:
        with numpy.errstate(invalid="ignore"):
            data = [each.data.astype(numpy.float64) for each in taken if each.data is not None]
        if code in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            weights, offsets = data[0], data[1] if len(data) > 1 else offsets
        elif code == "MUL" and data:
            factors, offsets = factors * data[0].reshape(-1), offsets * data[0].reshape(-1)
        elif code == "ADD" and data:
            offsets = offsets + data[0].reshape(-1)
        elif code == "SUB" and data:
            sign = 1 if taken[1].data is not None else -1
            factors, offsets = factors * sign, sign * (offsets - data[0].reshape(-1))
    if weights is None:
        return _single(factors, offsets)
    if operator.kind is OperatorKind.DEPTHWISE_CONVOLUTION:
        weights = weights[0]
    elif operator.kind is OperatorKind.CONVOLUTION and weights.ndim == 2:
        weights = weights.T[None, None]
    else:
        weights = numpy.moveaxis(weights, 0, -1)
    return _single(weights * factors, *([offsets] if operator.settings["has_bias"] else []))


def _single(*arrays: Array) -> tuple[Array, ...]:
    import numpy

    return tuple(numpy.ascontiguousarray(each, numpy.float32) for each in arrays)
