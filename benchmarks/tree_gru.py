"""A TreeGRU over loop nests, after AutoTVM's (Chen et al. 2018, section 3.1 and appendix A.3), in TensorFlow.

Each computation of a nest is a leaf: its numbers, and those of the loops around it, the outermost first, go through a
gated recurrent unit. What all leaves of a schedule end with is added up, as AutoTVM scatters it into slots, and two
layers turn the sum into the logarithm of the time. An ensemble of several, each trained on another draw of the samples,
says how much they differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import Array, clipped_log_times
from halide_autotune.targets.lowering.loop_nest import Access, Computation, Loop, LoopNest

_KINDS = ("root", "branch", "serial", "parallel")
_LOOP_NUMBERS, _LEAF_NUMBERS = len(_KINDS) + 3, 12
_WIDTH, _HIDDEN = 24, 32
_MEMBERS, _EPOCHS, _RATE, _PAIRS_A_SAMPLE = 3, 150, 5e-3, 8


class NestPaths:
    """Schedules as the network takes them: of each leaf its loops and its numbers.

    Args:
        nests: of each schedule.
    """

    def __init__(self, nests: Sequence[LoopNest]) -> None:
        leaves = [[*_leaves(nest.root, (), 1.0)] for nest in nests]
        self.depth = max(len(path) for each in leaves for path, _ in each)
        most = max(map(len, leaves))
        self.loops = np.zeros((len(nests), most, self.depth, _LOOP_NUMBERS), dtype=np.float32)
        self.masks = np.zeros((len(nests), most, self.depth), dtype=bool)
        self.numbers = np.zeros((len(nests), most, _LEAF_NUMBERS), dtype=np.float32)
        self.is_leaf = np.zeros((len(nests), most, 1), dtype=np.float32)
        for row, found in enumerate(leaves):
            for place, (path, numbers) in enumerate(found):
                self.loops[row, place, : len(path)] = path
                self.masks[row, place, : len(path)] = True
                self.numbers[row, place], self.is_leaf[row, place] = numbers, 1.0

    def of(self, places: Sequence[int]) -> list[Array]:
        """The arrays of some schedules."""
        chosen = np.asarray(places)
        return [each[chosen] for each in (self.loops, self.masks, self.numbers, self.is_leaf)]


def _leaves(loop: Loop, path: tuple[tuple[float, ...], ...], times: float) -> Iterator[tuple[tuple[Any, ...], Any]]:
    extent = 1.0 if loop.extent is None else loop.extent
    times *= extent
    kind = [float(loop.kind == each) for each in _KINDS]
    here = (*path, (*kind, _log(extent), _log(times), _log(loop.branches)))
    for each in loop.computations:
        yield here, _numbers(each, times)
    for inside in loop.loops:
        yield from _leaves(inside, here, times)


def _numbers(computation: Computation, times: float) -> list[float]:
    operations = sum(computation.operations.values())
    floats = sum(count for kind, count in computation.operations.items() if kind.startswith("float"))
    numbers = [_log(operations), _log(floats), _log(times * operations), _log(times)]
    for is_store in (False, True):
        accesses = [each for each in computation.accesses if each.is_store is is_store]
        for which in ("dense", "single", "other"):
            numbers.append(_log(sum(each.count for each in accesses if _shape(each) == which)))
        numbers.append(_log(times * sum(each.count * each.lanes * each.element_bytes for each in accesses)))
    return numbers


def _shape(access: Access) -> str:
    if access.lanes == 1 or access.lane_stride == 0:
        return "single"
    return "dense" if access.lane_stride == 1 else "other"


def _log(number: float) -> float:
    return math.log2(1.0 + max(0.0, number)) / 10.0


class TreeGru:
    """Learns from some of the schedules, and says of others how long they take.

    Args:
        paths: of all schedules.
        uses_ranks: whether it learns from pairs (AutoTVM's rank loss) instead of from the times themselves.
    """

    def __init__(self, paths: NestPaths, *, uses_ranks: bool, seed: int) -> None:
        self._paths, self._uses_ranks, self._seed = paths, uses_ranks, seed
        self._members: list[Any] = []

    def fit(self, places: Sequence[int], times_ms: Sequence[float]) -> None:
        """Train anew."""
        import tensorflow as tf

        tf.keras.utils.set_random_seed(self._seed)
        source = np.random.default_rng(self._seed)
        logs = clipped_log_times(times_ms)
        values = ((logs - logs.mean()) / (logs.std() or 1.0)).astype(np.float32)
        self._members = [self._network() for _ in range(_MEMBERS)]
        for network in self._members:
            drawn = source.choice(len(places), len(places))
            inputs, wanted = self._paths.of([places[each] for each in drawn]), values[drawn]
            _train(network, inputs, wanted, source if self._uses_ranks else None)

    def predict(self, places: Sequence[int]) -> tuple[Array, Array]:
        """What each is expected to take, on a scale of its own, and how much the members differ."""
        inputs = self._paths.of(places)
        found = np.array([network.predict_on_batch(inputs)[:, 0] for network in self._members], dtype=np.float64)
        return found.mean(axis=0), found.std(axis=0)

    def _network(self) -> Any:
        from tensorflow import keras

        layers, most = keras.layers, self._paths.loops.shape[1]
        loops = keras.Input((most, self._paths.depth, _LOOP_NUMBERS))
        masks = keras.Input((most, self._paths.depth), dtype="bool")
        numbers, is_leaf = keras.Input((most, _LEAF_NUMBERS)), keras.Input((most, 1))
        unit = _PathGru(self._paths.depth)
        ends = layers.Concatenate()([unit([loops, masks]), layers.Dense(_WIDTH, activation="relu")(numbers)])
        leaves = layers.Dense(_HIDDEN, activation="relu")(ends)
        total = layers.Lambda(lambda both: keras.ops.sum(both[0] * both[1], axis=1))([leaves, is_leaf])
        hidden = layers.Dense(_HIDDEN, activation="relu")(total)
        return keras.Model([loops, masks, numbers, is_leaf], layers.Dense(1)(hidden))


def _PathGru(depth: int) -> Any:
    """A gated recurrent unit along the loops around each leaf."""
    from tensorflow import keras

    class PathGru(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.unit = keras.layers.GRU(_WIDTH)

        def call(self, both: Any) -> Any:
            loops, masks = both
            shape = keras.ops.shape(loops)
            ends = self.unit(
                keras.ops.reshape(loops, (-1, depth, _LOOP_NUMBERS)), mask=keras.ops.reshape(masks, (-1, depth))
            )
            return keras.ops.reshape(ends, (shape[0], shape[1], _WIDTH))

    return PathGru()


def _train(network: Any, inputs: list[Array], wanted: Array, source: np.random.Generator | None) -> None:
    """Adam on all at once, by the squared error, or by the logistic loss of pairs if there is a source of them."""
    import tensorflow as tf

    optimizer = tf.keras.optimizers.Adam(_RATE)
    tensors, values = [tf.constant(each) for each in inputs], tf.constant(wanted)

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def step(pairs: Any) -> None:
        with tf.GradientTape() as tape:
            found = network(tensors, training=True)[:, 0]
            if source is None:
                loss = tf.reduce_mean(tf.square(found - values))
            else:
                gaps = tf.gather(found, pairs[:, 0]) - tf.gather(found, pairs[:, 1])
                signs = tf.sign(tf.gather(values, pairs[:, 0]) - tf.gather(values, pairs[:, 1]))
                loss = tf.reduce_mean(tf.nn.softplus(-signs * gaps) * tf.abs(signs))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))

    count = len(wanted)
    for _ in range(_EPOCHS):
        pairs = np.zeros((0, 2)) if source is None else source.integers(0, count, (_PAIRS_A_SAMPLE * count, 2))
        step(tf.constant(pairs, dtype=tf.int32))
