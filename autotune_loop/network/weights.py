"""What a network's operators compute with: a Keras model's weights, as the operators' generators take them.

What follows a reduction in place is folded into its weights: of scale(Σ w·x + b) = s·(Σ w·x + b) + o the factors s go
into the weights, and b becomes s·b + o.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.keras_constants import (
    hard_sigmoid_scale,
    is_hard_sigmoid,
    scale_by_constant,
)
from halide_autotune.autotune_loop.network.operators import REDUCTIONS, Activation, Network, Operator, OperatorKind
from halide_autotune.autotune_loop.network.read_keras import keras_graph

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_SCALES = ("BatchNormalization", "Normalization", "Rescaling")


def operator_weights(model: Any, network: Network) -> list[tuple[Array, ...]]:
    """The weights of each operator in 32-bit floats, in the order in which its generator takes them.

    Convolutions and dense layers have their weights with the channels out innermost (rows, columns, channels in,
    channels out), and a bias if their settings say so; the gates of a cell with a memory have the weights of its state
    after those of its input. A scale has factors and offsets of each channel; others have none.

    Args:
        model: the `keras.Model` that the network was read from.
    """
    layers = {str(layer.name): layer for layer in keras_graph(model).operations}
    return [_weights([layers[place] for place in each.places], each) for each in network.operators]


def _weights(layers: Sequence[Any], operator: Operator) -> tuple[Array, ...]:
    import numpy

    channels = operator.output.shape[-1]
    factors, offsets = numpy.ones(channels), numpy.zeros(channels)
    if operator.kind not in (*REDUCTIONS, OperatorKind.SCALE):
        return ()
    weights: Array | None = None
    for number, layer in enumerate(layers, 1):
        if operator.kind in REDUCTIONS and weights is None and hasattr(layer, "kernel"):
            recurrent = [layer.recurrent_kernel] if hasattr(layer, "recurrent_kernel") else []
            weights = numpy.concatenate([numpy.asarray(each, numpy.float64) for each in (layer.kernel, *recurrent)])
            offsets = numpy.asarray(layer.bias, numpy.float64) if layer.use_bias else offsets
            scale = None
        elif type(layer).__name__ in _SCALES:
            scale = _scale(layer)
        else:
            scale = scale_by_constant(layer)
        if is_hard_sigmoid(layer):
            # An operator ends with the relu6 inside, and begins with what is behind it.
            scale = hard_sigmoid_scale(is_before=number == len(layers) and operator.activation is Activation.RELU6)
        if scale is not None:
            factor, offset = scale
            factors, offsets = factors * factor, offsets * factor + offset
    if weights is None:
        return _single(factors, offsets)
    if operator.kind is OperatorKind.DEPTHWISE_CONVOLUTION:
        # Each channel's channels out lie beside one another.
        weights = weights.reshape((*weights.shape[:2], channels))
    elif operator.kind is OperatorKind.CONVOLUTION and weights.ndim == 2:
        weights = weights[None, None]
    return _single(weights * factors, *([offsets] if operator.settings["has_bias"] else []))


def _single(*arrays: Array) -> tuple[Array, ...]:
    import numpy

    return tuple(numpy.ascontiguousarray(each, numpy.float32) for each in arrays)


def _scale(layer: Any) -> tuple[Array, Array]:
    """Factors and offsets of each channel, as Keras computes the layer when it does not train."""
    import keras
    import numpy

    def known(value: Any, otherwise: float) -> Array:
        return numpy.asarray(otherwise if value is None else value, numpy.float64).reshape(-1)

    kind = type(layer).__name__
    if kind == "Rescaling":
        return known(layer.scale, 1.0), known(layer.offset, 0.0)
    if kind == "Normalization":
        deviation = numpy.maximum(numpy.sqrt(known(layer.variance, 1.0)), keras.backend.epsilon())
        mean = known(layer.mean, 0.0)
        return (deviation, mean) if layer.invert else (1 / deviation, -mean / deviation)
    factor = known(layer.gamma, 1.0) / numpy.sqrt(known(layer.moving_variance, 1.0) + layer.epsilon)
    return factor, known(layer.beta, 0.0) - known(layer.moving_mean, 0.0) * factor
