"""The training loop, all of it inside one TensorFlow graph.

Halide's loop, step for step (`retrain_cost_model.cpp`, `DefaultCostModel.cpp`): in each epoch one Adam step
for each pipeline on all its schedules, by ascending pipeline id, with the optimizer's state kept from
pipeline to pipeline. Anderson2021's tool shuffles batches of 64 instead; here both networks take one step for all
schedules, which ranks held-out ones no worse. A call per step would take twice the time; XLA gained
nothing and compiles again for every number of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.cost_model.network import (
    input_signature,
    pack_weights,
    predicted_ms,
    prices_before_activation,
)
from halide_autotune.autotune_loop.cost_model.pipeline_batch import PipelineBatch, pack_batches
from halide_autotune.autotune_loop.cost_model.terms import FloatArray
from halide_autotune.autotune_loop.specification.options import LearnOptions, Loss
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-5
NEGATIVE_PRICE_PENALTY = 1e-5
_SMALLEST_COST = 1e-10


def fit(
    weights: Weights, batches: Sequence[PipelineBatch], learn: LearnOptions, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Train on these batches; hold nothing out and judge nothing.

    Args:
        weights: where to start.
        batches: at least one, each with at least one schedule; taken in the given order.
        seed: chooses which pairs the rank loss sees.

    Returns:
        The parameter vector (see `pack_weights`; NaN after a divergence), and the losses:
        (epochs,), the mean over the pipelines of the loss before each step.
    """
    packed = pack_batches(batches, seed if learn.loss == "rank" else None)
    function = _fitting_function(weights.network, learn.loss)
    parameters, losses = function(
        pack_weights(weights),
        *packed,
        np.int32(learn.epochs),
        np.float32(learn.learning_rate),
    )
    return parameters.numpy(), losses.numpy()


def batch_loss(loss: Loss, network: Network, before_activation: Any, terms: Any, runtimes_ms: Any, pairs: Any) -> Any:
    """The loss of one pipeline inside a graph: a sum over its schedules, with Halide's penalty.

    Args:
        before_activation: z, (n, stages * 32); terms: (n * stages, 32); runtimes_ms: (n,);
        pairs: (pairs, 2), the faster schedule first; used by the rank loss alone.
    """
    import tensorflow as tf

    predictions = predicted_ms(before_activation, terms, network)
    # The penalty pulls prices that the activation has cut off back to where they have a gradient.
    penalty = NEGATIVE_PRICE_PENALTY * tf.reduce_sum(tf.nn.relu(-before_activation))
    if loss == "relative_throughput":
        fastest = tf.reduce_min(runtimes_ms)
        throughput = 1 / tf.maximum(predictions / fastest, _SMALLEST_COST)
        return tf.reduce_sum(tf.square(throughput - fastest / runtimes_ms)) + penalty
    log_costs = tf.math.log(tf.maximum(predictions, _SMALLEST_COST))
    gaps = tf.gather(log_costs, pairs[:, 0]) - tf.gather(log_costs, pairs[:, 1])
    schedules, pair_count = tf.cast(tf.size(runtimes_ms), tf.float32), tf.cast(tf.size(gaps), tf.float32)
    # The mean over pairs times the schedules: as heavy against the penalty as Halide's loss.
    return tf.reduce_sum(tf.nn.softplus(gaps)) * schedules / tf.maximum(pair_count, 1) + penalty


@cache
def _fitting_function(network: Network, loss: Loss) -> Callable[..., Any]:
    """Traced once for the process, for any number of pipelines, schedules, stages and epochs."""
    import tensorflow as tf

    def step(parameters: Any, place: Any, next_pair: Any, arrays: tuple[Any, ...]) -> tuple[Any, Any]:
        logs, terms, pipeline_inputs, runtimes_ms, pairs = arrays
        row, rows, schedule, schedules, stage, stages, pair = tf.unstack(place, num=7)
        own_terms = terms[row : row + rows]
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            before_activation = prices_before_activation(
                parameters, logs[row : row + rows], pipeline_inputs[stage : stage + stages], network
            )
            own_runtimes_ms = runtimes_ms[schedule : schedule + schedules]
            value = batch_loss(loss, network, before_activation, own_terms, own_runtimes_ms, pairs[pair:next_pair])
        return value, tape.gradient(value, parameters)

    def run(parameters: Any, *inputs: Any) -> tuple[Any, Any]:
        *arrays, layout, epochs, learning_rate = inputs
        pipelines = tf.shape(layout)[0]
        pair_ends = tf.concat([layout[1:, 6], [tf.shape(arrays[4])[0]]], axis=0)

        def one_step(index: Any, state: Any, epoch_loss: Any) -> tuple[Any, Any, Any]:
            value, gradient = step(state[0], layout[index], pair_ends[index], tuple(arrays))
            return index + 1, _adam(state, gradient, learning_rate), epoch_loss + value

        def one_epoch(epoch: Any, state: Any, losses: Any) -> tuple[Any, Any, Any]:
            start = (tf.constant(0), state, tf.constant(0.0))
            _, state, epoch_loss = tf.while_loop(lambda index, *_: index < pipelines, one_step, start)
            return epoch + 1, state, losses.write(epoch, epoch_loss / tf.cast(pipelines, tf.float32))

        zeros, one = tf.zeros_like(parameters), tf.constant(1.0)
        losses = tf.TensorArray(tf.float32, size=epochs)
        start = (tf.constant(0), (parameters, zeros, zeros, one, one), losses)
        _, state, losses = tf.while_loop(lambda epoch, *_: epoch < epochs, one_epoch, start)
        return state[0], losses.stack()

    function: Callable[..., Any] = tf.function(run, input_signature=_signature(network), autograph=False)
    return function


def _adam(state: tuple[Any, ...], gradient: Any, learning_rate: Any) -> tuple[Any, ...]:
    """One step of Adam as Halide does it: epsilon is added to the bias-corrected root.

    Keras adds it before the correction. The last two entries of the state are the decays to the
    power of the step count.
    """
    import tensorflow as tf

    parameters, first, second, first_power, second_power = state
    first = FIRST_DECAY * first + (1 - FIRST_DECAY) * gradient
    second = SECOND_DECAY * second + (1 - SECOND_DECAY) * tf.square(gradient)
    first_power, second_power = first_power * FIRST_DECAY, second_power * SECOND_DECAY
    rate = learning_rate / (1 - first_power)
    parameters = parameters - rate * first / (tf.sqrt(second / (1 - second_power)) + EPSILON)
    return parameters, first, second, first_power, second_power


def _signature(network: Network) -> list[Any]:
    import tensorflow as tf

    return [
        *input_signature(network),
        tf.TensorSpec((None,), tf.float32),
        tf.TensorSpec((None, 2), tf.int32),
        tf.TensorSpec((None, 7), tf.int32),
        tf.TensorSpec((), tf.int32),
        tf.TensorSpec((), tf.float32),
    ]
