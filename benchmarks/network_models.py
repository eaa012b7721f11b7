"""Networks as papers have them, of Keras's layers; batch 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def resnet18() -> Any:
    """He et al., Deep Residual Learning for Image Recognition (2015), table 1; shortcuts between stages are
    projections."""
    import keras

    layers, relu = keras.layers, keras.layers.ReLU
    source = keras.Input((224, 224, 3))
    value = layers.MaxPooling2D(3, strides=2, padding="same")(relu()(_normalized(source, 64, 7, 2)))
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            inner = relu()(_normalized(value, channels, 3, stride))
            inner = _normalized(inner, channels, 3, 1)
            shortcut = value if stride == 1 else _normalized(value, channels, 1, stride)
            value = relu()(layers.Add()([inner, shortcut]))
    value = layers.GlobalAveragePooling2D()(value)
    return keras.Model(source, layers.Dense(1000, activation="softmax")(value), name="resnet18")


def _normalized(value: Any, channels: int, kernel: int, stride: int) -> Any:
    import keras

    made = keras.layers.Conv2D(channels, kernel, strides=stride, padding="same", use_bias=False)(value)
    return keras.layers.BatchNormalization()(made)


def dqn() -> Any:
    """Mnih et al., Human-level control through deep reinforcement learning (2015), methods: the last four pictures of a
    game to the values of 18 actions."""
    import keras

    layers = keras.layers
    source = keras.Input((84, 84, 4))
    value = source
    for channels, kernel, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
        value = layers.Conv2D(channels, kernel, strides=stride, activation="relu")(value)
    value = layers.Dense(512, activation="relu")(layers.Flatten()(value))
    return keras.Model(source, layers.Dense(18)(value), name="dqn")


def lstm_lm() -> Any:
    """A step of the medium model of Zaremba et al., Recurrent Neural Network Regularization (2014): an embedded word
    and the states of two cells to the next word's probabilities and the next states."""
    import keras

    units, words = 650, 10_000
    value = keras.Input((units,), name="word")
    inputs, states = [value], []
    for _ in range(2):
        before = [keras.Input((units,)), keras.Input((units,))]
        value, after = keras.layers.LSTMCell(units)(value, before)
        inputs += before
        states += after
    scores = keras.layers.Dense(words, activation="softmax")(value)
    return keras.Model(inputs, [scores, *states], name="lstm_lm")


BUILT: Mapping[str, Callable[[], Any]] = {"resnet18": resnet18, "dqn": dqn, "lstm_lm": lstm_lm}
# Keras's own.
APPLICATIONS: Mapping[str, str] = {"mobilenet": "MobileNet", "mobilenetv2": "MobileNetV2"}
