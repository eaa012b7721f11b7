"""Keras, imported once and quietly; and networks computed operator by operator, to compare with their models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.network.operators import Network, Operator, OperatorKind
from halide_autotune.autotune_loop.network.read_keras import keras_graph
from tests.activations import ACTIVATIONS

Picture = Any
_CONVOLUTIONS = (OperatorKind.CONVOLUTION, OperatorKind.DEPTHWISE_CONVOLUTION)


@pytest.fixture(scope="session")
def keras(tensorflow_ready: None) -> Any:
    import keras

    keras.utils.set_random_seed(7)
    return keras


@pytest.fixture
def compute(keras: Any) -> Callable[[Any, Network, Picture], dict[str, Picture]]:
    """All tensors of a network for one input, by name: what each operator says that it computes, with the weights of
    the layers that it stands for."""

    def computed(model: Any, network: Network, source: Picture) -> dict[str, Picture]:
        layers = {layer.name: layer for layer in keras_graph(model).operations}
        (first,) = network.inputs
        tensors = {first.name: source}
        for operator in network.operators:
            inputs = [tensors[tensor.name] for tensor in operator.inputs]
            made = _computed(operator, inputs, [layers[place] for place in operator.places])
            tensors[operator.output.name] = made.reshape((len(source), *operator.output.shape))
        return tensors

    return computed


def _computed(operator: Operator, inputs: list[Picture], layers: list[Any]) -> Picture:
    import tensorflow as tf

    settings, value = operator.settings, tf.constant(inputs[0])
    strides = [settings.get("stride_rows", 1), settings.get("stride_columns", 1)]
    dilations = [settings.get("dilation_rows", 1), settings.get("dilation_columns", 1)]
    pads = [[settings.get(f"pad_{axis}_{end}", 0) for end in ("before", "after")] for axis in ("rows", "columns")]
    is_weighty = operator.kind in (*_CONVOLUTIONS, OperatorKind.DENSE)
    weighty = next((layer for layer in layers if hasattr(layer, "kernel")), None) if is_weighty else None
    match operator.kind:
        case OperatorKind.CONVOLUTION:
            assert weighty is not None
            value = tf.pad(value, [[0, 0], *pads, [0, 0]])
            groups = settings["groups"]
            kernel = weighty.kernel if len(weighty.kernel.shape) == 4 else weighty.kernel[None, None]
            parts = zip(tf.split(value, groups, -1), tf.split(kernel, groups, -1), strict=True)
            found = [tf.nn.conv2d(part, kernel, strides, "VALID", dilations=dilations) for part, kernel in parts]
            value = tf.concat(found, -1)
        case OperatorKind.DEPTHWISE_CONVOLUTION:
            assert weighty is not None
            value = tf.pad(value, [[0, 0], *pads, [0, 0]])
            value = tf.nn.depthwise_conv2d(value, weighty.kernel, [1, *strides, 1], "VALID", dilations=dilations)
        case OperatorKind.DENSE:
            assert weighty is not None
            value = value @ weighty.kernel
        case OperatorKind.POOL:
            value = _pooled(value, settings, pads, strides)
        case OperatorKind.GLOBAL_POOL:
            value = (tf.reduce_max if settings["is_max"] else tf.reduce_mean)(value, axis=[1, 2])
        case OperatorKind.MULTIPLY:
            value = value * inputs[1]
        case OperatorKind.ADD:
            value = value + inputs[1]
        case OperatorKind.SUBTRACT:
            value = inputs[1] - value if settings["reverses"] else value - inputs[1]
        case OperatorKind.SOFTMAX:
            value = tf.nn.softmax(value)
        case OperatorKind.CONCATENATE:
            value = tf.concat(inputs, -1)
        case OperatorKind.PAD:
            value = tf.pad(value, [[0, 0], *pads, [0, 0]])
    if weighty is not None and weighty.use_bias:
        assert settings["has_bias"]
        value = value + weighty.bias
    for layer in layers:
        if type(layer).__name__ in ("BatchNormalization", "Rescaling", "Normalization"):
            assert settings.get("has_bias", 1)
            value = layer(value)
        elif type(layer).__module__.startswith("keras.src.ops") and len(inputs) == 1:
            # With a constant.
            arguments = layer._inbound_nodes[0].arguments
            value = layer(
                *(value if any(each is taken for taken in arguments.keras_tensors) else each for each in arguments.args)
            )
    if is_weighty and len(inputs) == 2:
        value = value + inputs[1]
    return ACTIVATIONS[operator.activation](np.asarray(value))


def _pooled(value: Any, settings: Any, pads: list[list[int]], strides: list[int]) -> Any:
    import tensorflow as tf

    window = [settings["kernel_rows"], settings["kernel_columns"]]
    if settings["is_max"]:
        value = tf.pad(value, [[0, 0], *pads, [0, 0]], constant_values=-np.inf)
        return tf.nn.max_pool2d(value, window, strides, "VALID")
    # What is outside does not count.
    sums = tf.nn.avg_pool2d(tf.pad(value, [[0, 0], *pads, [0, 0]]), window, strides, "VALID")
    counts = tf.nn.avg_pool2d(tf.pad(tf.ones_like(value), [[0, 0], *pads, [0, 0]]), window, strides, "VALID")
    return sums / counts
