"""Training of the network that walks loops, in TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from halide_autotune.autotune_loop.cost_model.tree_gru.loop_paths import LoopPaths
from halide_autotune.autotune_loop.cost_model.tree_gru.weights import STATE, TreeGruWeights, random_weights
from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.lowered.loop_rows import LOOP_ROW_NAMES

# From 64 schedules, more steps than these learn by heart. The rate falls to a share of itself.
_STEPS, _RATE, _LAST_SHARE = 50, 0.01, 0.1
_MOMENTUM, _SQUARES, _TINY = 0.9, 0.99, 1e-8
# Of weights, but those that begin with a meaning.
_DECAY = 0.1
# How sure of an order a difference of logarithms makes; and how many pairs a step sees.
_SHARPNESS, _PAIRS_A_SCHEDULE = 8.0, 8
# A graph is traced for so many depths, or twice as many and so on: what is deeper than the schedules is empty.
_DEPTHS = 4
_NO_ROWS, _NO_PARENTS = np.zeros((0, len(LOOP_ROW_NAMES)), dtype=np.float32), np.zeros(0, dtype=np.int32)
_IS_DECAYED = [float(each.name not in ("cost_of_row", "prior_share")) for each in fields(TreeGruWeights)]


@dataclass(frozen=True)
class TreeGruProblem:
    """What a network is to learn.

    Attributes:
        log_times: of each schedule, the logarithm of its time.
        foreseen: what other pipelines say of each schedule.
        draws: member × schedule, how often each member learns from each.
        uses_ranks: whether it learns from pairs which is faster (AutoTVM's rank loss), or the times themselves.
    """

    paths: LoopPaths
    log_times: Array
    foreseen: Array
    draws: npt.NDArray[np.int64]
    uses_ranks: bool
    seed: int


class GraphInputs(NamedTuple):
    """What the graph is given: `LoopPaths` and `TreeGruProblem` as tensors, and how often which member draws what."""

    rows: list[Any]
    parents: list[Any]
    owners: Any
    loops: Any
    log_counts: Any
    foreseen: Any
    log_times: Any
    draws: Any
    seed: Any


def train_tree_gru(problem: TreeGruProblem) -> TreeGruWeights:
    """Train from random weights; the same problem gives the same weights on the same machine."""
    import tensorflow as tf

    given = graph_inputs(problem)
    start = [tf.constant(each) for each in random_weights(len(problem.draws), problem.seed).tensors()]
    trained = _trainer(len(problem.draws), len(given.rows), uses_ranks=problem.uses_ranks)(start, given)
    return TreeGruWeights(*(each.numpy() for each in trained))


def graph_inputs(problem: TreeGruProblem) -> GraphInputs:
    """A problem as the graph takes it."""
    import tensorflow as tf

    paths = problem.paths
    deeper = -len(paths.rows) % _DEPTHS
    return GraphInputs(
        [tf.constant(each) for each in (*paths.rows, *[_NO_ROWS] * deeper)],
        [tf.constant(each) for each in (*paths.parents, *[_NO_PARENTS] * deeper)],
        tf.constant(paths.owners),
        tf.constant(paths.loops),
        tf.constant(np.log(paths.counts)),
        tf.constant(problem.foreseen.astype(np.float32)),
        tf.constant((problem.log_times - problem.log_times.mean()).astype(np.float32)),
        tf.constant(problem.draws.astype(np.float32)),
        tf.constant(problem.seed),
    )


@cache
def _trainer(members: int, depths: int, *, uses_ranks: bool) -> Any:
    """The training of so many members as one graph for so many depths: of weights and `GraphInputs`."""
    import tensorflow as tf

    @tf.function(input_signature=_signature(members, depths))  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def train(weights: Any, given: GraphInputs) -> Any:
        usual = tf.reduce_mean(graph_scores(weights, given), axis=1, keepdims=True)
        momenta, squares = [[tf.zeros_like(each) for each in weights] for _ in range(2)]
        for step in tf.range(_STEPS):
            with tf.GradientTape() as tape:
                tape.watch(weights)
                found = graph_scores(weights, given) - usual
                loss = _rank_loss(found, given, step) if uses_ranks else _time_loss(found, given)
            gradients = tape.gradient(loss, weights)
            weights, momenta, squares = _stepped(weights, gradients, momenta, squares, tf.cast(step, tf.float32))
        return weights

    return train


def _signature(members: int, depths: int) -> list[Any]:
    """What the graph is traced for once: however many loops and schedules there are."""
    import tensorflow as tf

    numbers, places = tf.TensorSpec([None]), tf.TensorSpec([None], tf.int32)
    return [
        [tf.TensorSpec(each.shape) for each in random_weights(members, 0).tensors()],
        GraphInputs(
            rows=[tf.TensorSpec([None, len(LOOP_ROW_NAMES)])] * depths,
            parents=[places] * depths,
            owners=places,
            loops=places,
            log_counts=numbers,
            foreseen=numbers,
            log_times=numbers,
            draws=tf.TensorSpec([members, None]),
            seed=tf.TensorSpec([], tf.int32),
        ),
    ]


def graph_scores(weights: Any, given: GraphInputs) -> Any:
    """As `tree_gru_scores`, in TensorFlow.

    Args:
        weights: the tensors of `TreeGruWeights`.
    """
    import tensorflow as tf

    of = TreeGruWeights(*weights)
    states: list[Any] = []
    for rows, parents in zip(given.rows, given.parents, strict=True):
        gates = rows @ of.of_row + of.gate_bias
        around = tf.gather(states[-1], parents, axis=1) if states else tf.zeros_like(gates[..., :STATE])
        both = tf.sigmoid(gates[..., : 2 * STATE] + around @ of.of_state)
        forgotten, read = both[..., :STATE], both[..., STATE:]
        new = tf.tanh(gates[..., 2 * STATE :] + (read * around) @ of.of_read)
        states.append((1.0 - forgotten) * around + forgotten * new)
    hidden = tf.nn.relu(tf.concat(states, axis=1) @ of.hidden + of.hidden_bias)
    costs = (hidden @ of.cost + tf.concat(given.rows, axis=0) @ of.cost_of_row)[..., 0]
    each = tf.transpose(tf.gather(costs, given.loops, axis=1)) + given.log_counts[:, None]
    count = tf.shape(given.log_times)[0]
    most = tf.stop_gradient(tf.math.unsorted_segment_max(each, given.owners, count))
    sums = tf.math.unsorted_segment_sum(tf.exp(each - tf.gather(most, given.owners)), given.owners, count)
    return tf.transpose(tf.math.log(sums) + most) + of.prior_share[:, :, 0] * given.foreseen


def _time_loss(found: Any, given: GraphInputs) -> Any:
    import tensorflow as tf

    losses = given.draws * tf.square(found - given.log_times)
    return tf.reduce_sum(losses) / tf.cast(tf.size(given.log_times), tf.float32)


def _rank_loss(found: Any, given: GraphInputs, step: Any) -> Any:
    """The logistic loss of random pairs (AutoTVM's equation 2)."""
    import tensorflow as tf

    count = tf.size(given.log_times)
    pairs = tf.random.stateless_uniform([2, _PAIRS_A_SCHEDULE * count], [given.seed, step], 0, count, tf.int32)
    slower = tf.sign(tf.gather(given.log_times, pairs[0]) - tf.gather(given.log_times, pairs[1]))
    gaps = tf.gather(found, pairs[0], axis=1) - tf.gather(found, pairs[1], axis=1)
    drawn = tf.gather(given.draws, pairs[0], axis=1) * tf.gather(given.draws, pairs[1], axis=1) * tf.abs(slower)
    losses = drawn * tf.nn.softplus(-_SHARPNESS * slower * gaps)
    return tf.reduce_sum(losses) / tf.cast(_PAIRS_A_SCHEDULE * count, tf.float32)


def _stepped(weights: Any, gradients: Any, momenta: Any, squares: Any, step: Any) -> Any:
    """One step of Adam (Kingma and Ba 2015) with decoupled decay (Loshchilov and Hutter 2019)."""
    import tensorflow as tf

    rate = _RATE * (1.0 - (1.0 - _LAST_SHARE) * step / _STEPS)
    both = [*zip(weights, gradients, momenta, squares, _IS_DECAYED, strict=True)]
    momenta = [_MOMENTUM * momentum + (1.0 - _MOMENTUM) * gradient for _, gradient, momentum, _, _ in both]
    squares = [_SQUARES * square + (1.0 - _SQUARES) * gradient**2 for _, gradient, _, square, _ in both]
    first, second = 1.0 - _MOMENTUM ** (step + 1.0), 1.0 - _SQUARES ** (step + 1.0)
    stepped = [
        (1.0 - rate * _DECAY * is_decayed) * weight - rate * (momentum / first) / (tf.sqrt(square / second) + _TINY)
        for (weight, _, _, _, is_decayed), momentum, square in zip(both, momenta, squares, strict=True)
    ]
    return stepped, momenta, squares
