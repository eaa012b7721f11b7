"""Halide's cost-model network in TensorFlow: the prices r_k of the 32 kinds of work of each stage.

    head1 = sigmoid(head1_filter) . pipeline features + head1_bias      per stage of the pipeline, no relu
    head2 = act(head2_filter . log(schedule features + 1) + head2_bias)
    z     = conv1_filter . [head1; head2] + conv1_bias                  the prices are act(z)

act is a relu, leaky for Anderson2021.
Source: Halide, `src/autoschedulers/*/cost_model_generator.cpp`. All parameters travel as one flat
vector, so that one optimizer step is a handful of operations whatever the number of layers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.cost_model.terms import TERM_COUNT, FloatArray
from halide_autotune.autotune_loop.store.featurization import TYPE_COUNT
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import (
    CONV1_CHANNELS,
    HEAD1_CHANNELS,
    HEAD1_TYPES,
    HEAD1_WIDTH,
    HEAD2_CHANNELS,
    Weights,
)

PIPELINE_INPUTS = HEAD1_WIDTH * HEAD1_TYPES
# What the activation multiplies values below zero by; 0 is a relu.
_NEGATIVE_SLOPES = {Network.ADAMS2019: 0.0, Network.ANDERSON2021: 1e-10}


def schedule_inputs(network: Network) -> int:
    """Columns of the schedule input: the logarithms of the features, and a constant 1 for the bias."""
    return network.schedule_feature_count + 1


def network_inputs(schedule_features: FloatArray, pipeline_features: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What the network reads, from features as they lie in files.

    Args:
        schedule_features: (..., stages, 39 or 73).
        pipeline_features: (stages, 287); the first 7, a mask of the types in use, are left out.

    Returns:
        log(schedule features + 1) with a column of ones, (..., stages, 40 or 74); and (stages, 280).
    """
    ones = np.ones((*schedule_features.shape[:-1], 1), dtype=np.float32)
    logs = np.concatenate([np.log1p(schedule_features, dtype=np.float32), ones], axis=-1)
    return logs, np.ascontiguousarray(pipeline_features[:, TYPE_COUNT:])


def pack_weights(weights: Weights) -> FloatArray:
    """All parameters as one vector, in the order of `parameter_shapes`."""
    head2 = np.hstack([weights.head2_filter, weights.head2_bias[:, np.newaxis]])
    parts = (weights.head1_filter, weights.head1_bias, head2, weights.conv1_filter, weights.conv1_bias)
    return np.concatenate([np.ascontiguousarray(part).ravel() for part in parts]).astype(np.float32)


def unpack_weights(parameters: FloatArray, network: Network) -> Weights:
    """The weights that `pack_weights` made a vector of.

    Raises:
        WeightsError: a value is not finite.
    """
    arrays, start = [], 0
    for shape in parameter_shapes(network):
        stop = start + math.prod(shape)
        arrays.append(parameters[start:stop].reshape(shape))
        start = stop
    head1_filter, head1_bias, head2, conv1_filter, conv1_bias = arrays
    return Weights(
        head1_filter=head1_filter.reshape(HEAD1_CHANNELS, HEAD1_WIDTH, HEAD1_TYPES),
        head1_bias=head1_bias,
        head2_filter=head2[:, :-1],
        head2_bias=head2[:, -1],
        conv1_filter=conv1_filter,
        conv1_bias=conv1_bias,
    )


def parameter_shapes(network: Network) -> tuple[tuple[int, ...], ...]:
    """Shapes inside the flat vector: head 1, head 2 with its bias as the last column, conv 1."""
    return (
        (HEAD1_CHANNELS, PIPELINE_INPUTS),
        (HEAD1_CHANNELS,),
        (HEAD2_CHANNELS, schedule_inputs(network)),
        (CONV1_CHANNELS, HEAD1_CHANNELS + HEAD2_CHANNELS),
        (CONV1_CHANNELS,),
    )


def input_signature(network: Network) -> list[Any]:
    """The parameters, logarithms, terms and pipeline inputs of a graph, of any number of schedules and stages."""
    import tensorflow as tf

    parameters = sum(math.prod(shape) for shape in parameter_shapes(network))
    columns = (schedule_inputs(network), TERM_COUNT, PIPELINE_INPUTS)
    return [tf.TensorSpec(shape, tf.float32) for shape in ((parameters,), *((None, count) for count in columns))]


def prices_before_activation(parameters: Any, logs: Any, pipeline_inputs: Any, network: Network) -> Any:
    """Run the network inside a TensorFlow graph.

    Args:
        parameters: flat vector.
        logs: (schedules * stages, 40 or 74), the stages of one schedule side by side.
        pipeline_inputs: (stages, 280).

    Returns:
        z, (schedules, stages * 32).
    """
    import tensorflow as tf

    sizes = [math.prod(shape) for shape in parameter_shapes(network)]
    head1_filter, head1_bias, head2_filter, conv1_filter, conv1_bias = (
        tf.reshape(part, shape)
        for part, shape in zip(tf.split(parameters, sizes), parameter_shapes(network), strict=True)
    )
    head1 = tf.matmul(pipeline_inputs, tf.sigmoid(head1_filter), transpose_b=True) + head1_bias
    head2 = _activation(tf.matmul(logs, head2_filter, transpose_b=True), network)
    # Head 1 is the same for every schedule of a pipeline: its part is computed once, then added to all.
    of_pipeline = tf.matmul(head1, conv1_filter[:, :HEAD1_CHANNELS], transpose_b=True) + conv1_bias
    of_schedule = tf.matmul(head2, conv1_filter[:, HEAD1_CHANNELS:], transpose_b=True)
    row_length = tf.shape(pipeline_inputs)[0] * TERM_COUNT
    return tf.reshape(of_schedule, (-1, row_length)) + tf.reshape(of_pipeline, (1, row_length))


def predicted_ms(before_activation: Any, terms: Any, network: Network) -> Any:
    """Predictions in milliseconds, (schedules,).

    Args:
        before_activation: what `prices_before_activation` gave.
        terms: (schedules * stages, 32), see `cost_terms`.
    """
    import tensorflow as tf

    return tf.reduce_sum(
        tf.reshape(terms, tf.shape(before_activation)) * _activation(before_activation, network), axis=1
    )


def _activation(values: Any, network: Network) -> Any:
    import tensorflow as tf

    slope = _NEGATIVE_SLOPES[network]
    return tf.nn.leaky_relu(values, slope) if slope else tf.nn.relu(values)
