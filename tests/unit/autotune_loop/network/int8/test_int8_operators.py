"""Operators of bytes compute what TensorFlow Lite's reference kernels do, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.network.int8.int8_weights import PackedLayout, packed, packed_layout
from halide_autotune.autotune_loop.network.operators import OperatorKind
from halide_autotune.autotune_loop.network.tflite.read_tflite import read_tflite
from halide_autotune.autotune_loop.network.tflite.tflite_weights import tflite_weights
from tests.tflite_models import Interpreted, check_operators, randomized, with_other_scales, write_tflite

pytestmark = pytest.mark.toolchain


def convolutions(layers: Any, source: Any) -> list[Any]:
    """With all that a window has, and channels that fill no block."""
    pooled = layers.ZeroPadding2D(1)(source)
    return [
        layers.Conv2D(24, 3, padding="same", activation="relu6")(source),
        layers.Conv2D(5, (1, 3), strides=2, activation="relu")(source),
        layers.Conv2D(8, 3, dilation_rate=2, padding="same")(source),
        layers.Conv2D(8, 3, groups=2)(source),
        layers.Conv2D(17, 5, strides=(2, 1), padding="same")(pooled),
        layers.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=2, activation="relu6")(source),
        layers.DepthwiseConv2D(3, dilation_rate=2, padding="same")(source),
    ]


def vectors(layers: Any, source: Any) -> list[Any]:
    """Means and what is computed of them, gates, and dense layers of pixels and of whole pictures."""
    mean = layers.GlobalAveragePooling2D()(source)
    gate = layers.Reshape((1, 1, 6))(layers.Dense(6, activation="sigmoid")(mean))
    return [
        layers.Dense(5, activation="softmax")(layers.Flatten()(source)),
        layers.Multiply()([source, gate]),
        layers.Dense(33, activation="relu")(layers.GlobalMaxPooling2D(keepdims=True)(source)),
        layers.Dense(19)(source),
    ]


def pictures(layers: Any, source: Any) -> list[Any]:
    """What touches each number: sums, products, activations, pools."""
    other = layers.AveragePooling2D(3, strides=1, padding="same")(source)
    return [
        layers.ReLU()(layers.Add()([source, other])),
        layers.Multiply()([source, other]),
        layers.MaxPooling2D((3, 2), strides=2, padding="same")(source),
        layers.Concatenate()([source, layers.Activation("tanh")(other)]),
        layers.Activation("silu")(source),
        layers.ReLU(6.0)(layers.Rescaling(2.5, -0.5)(source)),
        layers.Softmax()(source),
    ]


def differences(layers: Any, source: Any) -> list[Any]:
    """Either of the two may have one pixel, or be a constant; and further activations."""
    other = layers.AveragePooling2D(3, strides=1, padding="same")(source)
    mean = layers.GlobalAveragePooling2D(keepdims=True)(source)
    return [
        layers.ReLU()(layers.Subtract()([source, other])),
        layers.Subtract()([source, mean]),
        layers.Subtract()([mean, source]),
        source - 0.75,
        0.75 - source,
        *(layers.Activation(name)(source) for name in ("hard_swish", "gelu", "leaky_relu")),
    ]


@pytest.fixture(scope="module")
def differing(keras: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    layers = keras.layers
    first, second = (keras.Input(batch_shape=(1, 1, 64, 64), name=name) for name in ("first", "second"))
    made = [layers.Activation(name)(first) for name in ("leaky_relu", "hard_swish", "gelu")]
    made.append(layers.Subtract()([first, second]))
    path = tmp_path_factory.mktemp("differing") / "model.tflite"
    return write_tflite(keras.Model([first, second], made), path, is_int8=True, ends="int8")


@pytest.mark.parametrize("make", [convolutions, vectors, pictures, differences])
@pytest.mark.parametrize("one_scale", [False, True])
def test_each_operator_computes_what_the_reference_does(
    keras: Any, make: Callable[[Any, Any], list[Any]], one_scale: bool, tmp_path: Path
) -> None:
    source = keras.Input(batch_shape=(1, 13, 10, 6))
    model = randomized(keras.Model(source, make(keras.layers, source)))
    path = write_tflite(model, tmp_path / "model.tflite", is_int8=True, one_scale=one_scale)
    network = read_tflite(path)
    assert not network.unsupported
    check_operators(network, tflite_weights(path, network), Interpreted(path))


@pytest.mark.parametrize("seed", range(3))
def test_differences_and_activations_of_any_scales(differing: Path, seed: int, tmp_path: Path) -> None:
    path = with_other_scales(differing, tmp_path / "model.tflite", seed)
    network = read_tflite(path)
    check_operators(network, tflite_weights(path, network), Interpreted(path))


def test_a_batch_of_any_size_is_one_picture(keras: Any, tmp_path: Path) -> None:
    """The converter then makes dilation of three operators, and works out shapes while it runs."""
    layers = keras.layers
    source = keras.Input((13, 10, 6))
    value = layers.Conv2D(8, 3, dilation_rate=2, padding="same")(source)
    value = layers.DepthwiseConv2D(3, dilation_rate=(1, 3), activation="relu")(value)
    model = randomized(keras.Model(source, layers.Dense(3)(layers.Flatten()(value))))
    path = write_tflite(model, tmp_path / "model.tflite", is_int8=True)
    network = read_tflite(path)
    assert not network.unsupported
    kinds = [each.kind for each in network.operators]
    assert kinds.count(OperatorKind.CONVOLUTION) == 1 and kinds.count(OperatorKind.DEPTHWISE_CONVOLUTION) == 1
    check_operators(network, tflite_weights(path, network), Interpreted(path))


def test_weights_are_packed_as_instructions_take_them() -> None:
    weights = np.arange(3 * 2 * 5, dtype=np.int8).reshape(3, 1, 2, 5)
    found = packed(weights, PackedLayout(depth=4, block=2))
    assert found.shape == (2, 1, 2, 2, 2, 4)
    assert found[0, 0, 1, 0, 1].tolist() == weights[1, 0, 1, :4].tolist()
    assert found[1, 0, 0, 1].tolist() == [[weights[2, 0, 0, 4], 0, 0, 0], [0, 0, 0, 0]]
    assert packed_layout("arm-64-linux").depth == 2 and packed_layout("arm-64-linux-arm_dot_prod").depth == 4
