"""A Keras model as operators: they compute what the model does, and what no operator can do is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.network.operators import Activation, Network, OperatorKind
from halide_autotune.autotune_loop.network.read_keras import read_keras
from tests.activations import SLOPE

pytestmark = pytest.mark.toolchain
Compute = Callable[[Any, Network, Any], dict[str, Any]]


def randomized(model: Any) -> Any:
    """Weights that are not those of a new layer: a normalization then is one."""
    source = np.random.default_rng(3)
    model.set_weights([np.abs(source.normal(0.4, 0.2, each.shape)) + 0.05 for each in model.get_weights()])
    return model


def check_equal(model: Any, network: Network, compute: Compute, shape: tuple[int, ...]) -> None:
    source = np.random.default_rng(5).normal(size=(2, *shape)).astype(np.float32)
    tensors = compute(model, network, source)
    wanted = model(source, training=False)
    for tensor, each in zip(network.outputs, wanted if isinstance(wanted, list) else [wanted], strict=True):
        np.testing.assert_allclose(tensors[tensor.name], np.asarray(each), rtol=2e-4, atol=2e-5)


def residual(keras: Any) -> Any:
    """A block as ResNets have it, one as MobileNets do, and a head."""
    layers = keras.layers
    source = keras.Input((17, 23, 6))
    begun = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False, name="stem")(
        layers.ZeroPadding2D(1, name="padded")(source)
    )
    begun = layers.ReLU(name="stem_relu")(layers.BatchNormalization(name="stem_norm")(begun))
    inner = layers.Conv2D(8, (3, 1), padding="same", activation="relu", name="inner")(begun)
    inner = layers.BatchNormalization(name="outer_norm")(layers.Conv2D(8, 1, name="outer")(inner))
    joined = layers.ReLU(6.0, name="joined_relu")(layers.Add(name="joined")([begun, inner]))
    deep = layers.DepthwiseConv2D(3, dilation_rate=2, padding="same", depth_multiplier=2, name="deep")(joined)
    deep = layers.Conv2D(16, 3, groups=4, activation="silu", name="grouped")(layers.Activation("tanh")(deep))
    pooled = layers.AveragePooling2D(2, padding="same")(layers.MaxPooling2D((3, 2), strides=(2, 1))(deep))
    gate = layers.Dense(16, activation="sigmoid", name="gate")(layers.GlobalAveragePooling2D()(pooled))
    gated = layers.Multiply(name="gated")([layers.Reshape((1, 1, 16))(gate), pooled])
    several = layers.Concatenate()([gated, pooled])
    flat = layers.Flatten()(layers.Dropout(0.5)(several))
    return keras.Model(source, [layers.Dense(5, activation="softmax", name="head")(flat), pooled], name="residual")


def test_operators_compute_what_the_model_does(keras: Any, compute: Compute) -> None:
    model = randomized(residual(keras))
    network = read_keras(model)
    assert network.unsupported == ()
    check_equal(model, network, compute, (17, 23, 6))


def test_what_follows_in_place_is_fused(keras: Any) -> None:
    network = read_keras(residual(keras))
    by_place = {operator.places[0]: operator for operator in network.operators}
    assert by_place["padded"].places[1:] == ("stem", "stem_norm", "stem_relu")
    outer = by_place["outer"]
    assert outer.places == ("outer", "outer_norm", "joined", "joined_relu") and len(outer.inputs) == 2
    assert outer.activation is Activation.RELU6 and outer.settings["has_bias"] == 1
    assert by_place["deep"].activation is Activation.TANH
    kinds = [operator.kind for operator in network.operators]
    assert kinds.count(OperatorKind.SOFTMAX) == 1 and OperatorKind.ACTIVATION not in kinds
    assert OperatorKind.SCALE not in kinds and OperatorKind.ADD not in kinds


def test_what_others_need_too_is_not_fused(keras: Any, compute: Compute) -> None:
    layers = keras.layers
    source = keras.Input((8, 8, 4))
    made = layers.Conv2D(4, 3, padding="same", name="made")(source)
    active = layers.ReLU(name="active")(made)
    model = randomized(keras.Model(source, [layers.Add()([made, active]), layers.MaxPooling2D(2)(active)]))
    network = read_keras(model)
    kinds = [operator.kind.value for operator in network.operators]
    assert kinds[:2] == ["convolution", "activation"] and sorted(kinds[2:]) == ["add", "pool"]
    check_equal(model, network, compute, (8, 8, 4))
    ended = keras.Model(source, [made, active])
    assert len(read_keras(ended).operators) == 2, "the model gives what is before the activation, too"


def test_activations_with_a_slope_and_constants(keras: Any, compute: Compute) -> None:
    layers = keras.layers
    source = keras.Input((7, 6, 4))
    value = layers.Conv2D(5, 3, activation="hard_swish", name="first")(source)
    value = layers.LeakyReLU(SLOPE, name="leaky")(layers.Conv2D(5, 1, name="second")(value))
    value = layers.ELU(SLOPE, name="elu")(layers.DepthwiseConv2D(1, name="third")(value))
    value = layers.Conv2D(4, 1, activation=layers.LeakyReLU(SLOPE), name="fourth")(value)
    gate = layers.GlobalAveragePooling2D(keepdims=True)(value)
    value = layers.Activation("gelu", name="gelu")(layers.Subtract(name="less")([value, gate]))
    value = layers.Subtract(name="more")([gate, value])
    value = layers.ReLU(negative_slope=SLOPE, name="sloped")(value)
    # As MobileNetV3 has it.
    value = layers.ReLU(6.0, name="hard")(layers.Conv2D(4, 1, name="fifth")(value) + 3.0) * (1.0 / 6.0)
    value = (1.5 - value) / np.array([1.0, -2.0, 0.5, 3.0]) - 0.25
    model = randomized(keras.Model(source, value))
    network = read_keras(model)
    assert not network.unsupported
    found = {each.places[0]: (each.kind.value, each.activation.value, each.slope) for each in network.operators}
    assert found["first"] == ("convolution", "hard_swish", 0.0)
    assert found["second"] == found["fourth"] == ("convolution", "leaky_relu", SLOPE)
    assert found["third"] == ("depthwise_convolution", "elu", SLOPE)
    assert found["less"] == ("subtract", "gelu", 0.0) and found["more"] == ("subtract", "leaky_relu", SLOPE)
    assert found["fifth"] == ("convolution", "relu6", 0.0), "what is added goes into the bias"
    assert len(network.operators) == 9, "constants that follow one another are one scale"
    check_equal(model, network, compute, (7, 6, 4))


def test_a_hard_sigmoid_is_a_relu6_and_a_scale(keras: Any) -> None:
    layers = keras.layers
    source = keras.Input((7, 6, 4))
    value = layers.Conv2D(5, 3, use_bias=False, name="own")(source)
    value = layers.Activation("hard_sigmoid", name="alone")(layers.BatchNormalization(name="norm")(value))
    value = layers.Rescaling(2.0, name="twice")(layers.Conv2D(4, 1, activation="hard_sigmoid", name="within")(value))
    value = layers.Activation("hard_sigmoid", name="pooled")(layers.MaxPooling2D(2)(value))
    network = read_keras(keras.Model(source, value))
    assert not network.unsupported
    assert [(each.kind.value, each.places, each.activation.value) for each in network.operators] == [
        ("convolution", ("own", "norm", "alone"), "relu6"),
        ("scale", ("alone",), "none"),
        ("convolution", ("within",), "relu6"),
        ("scale", ("within", "twice"), "none"),
        ("pool", network.operators[4].places, "none"),
        ("scale", ("pooled",), "relu6"),
        ("scale", ("pooled",), "none"),
    ]
    assert all(each.settings["has_bias"] for each in network.operators if each.kind is OperatorKind.CONVOLUTION)


def test_layers_of_half_floats_are_told_in_one_sentence(keras: Any) -> None:
    layers = keras.layers
    source = keras.Input((8, 8, 4))
    value = layers.Conv2D(4, 3, dtype="mixed_float16", name="half")(source)
    value = layers.ReLU(dtype="mixed_float16")(value)
    model = keras.Model(source, layers.PReLU(shared_axes=[1, 2], name="steep")(value))
    assert {each.place: each.reason for each in read_keras(model).unsupported} == {
        "half": "Conv2D that computes in float16 by its policy mixed_float16, as 1 more layer does; make the model "
        "with the policy float32 and load its weights",
        "steep": "there is no operator for PReLU; LeakyReLU has one slope for all channels",
    }
    picture = keras.Input((8, 8, 3), dtype="uint8")
    assert not read_keras(keras.Model(picture, layers.Rescaling(1 / 255)(picture))).unsupported, "it computes in floats"


def test_a_layer_that_is_used_twice_is_two_operators(keras: Any, compute: Compute) -> None:
    shared = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="shared")
    source = keras.Input((8, 8, 4))
    model = randomized(keras.Model(source, shared(shared(source))))
    network = read_keras(model)
    assert [operator.places for operator in network.operators] == [("shared",), ("shared",)]
    check_equal(model, network, compute, (8, 8, 4))
    other = keras.Model(source, shared(source))
    assert len(read_keras(other).operators) == 1, "the other model's calls are not this one's"


def test_between_two_calls_of_a_layer_are_others(keras: Any, compute: Compute) -> None:
    layers = keras.layers
    convolution = layers.Conv2D(4, 3, padding="same", activation="relu", name="shared")
    relu = layers.ReLU(name="twice")
    source = keras.Input((9, 8, 4))
    value = convolution(layers.MaxPooling2D(3, 1, padding="same")(convolution(source)))
    value = relu(layers.AveragePooling2D(2)(relu(value - 0.5)))
    model = randomized(keras.Model(source, value))
    network = read_keras(model)
    assert [name for each in network.operators for name in each.places if name in ("shared", "twice")] == [
        *("shared", "shared"),
        *("twice", "twice"),
    ]
    made = {each.name for each in network.inputs}
    for operator in network.operators:
        assert {each.name for each in operator.inputs} <= made, "what it reads was computed before"
        made.add(operator.output.name)
    check_equal(model, network, compute, (9, 8, 4))


def test_numbers_in_another_order_are_told(keras: Any) -> None:
    source = keras.Input((8, 8, 4))
    model = keras.Model(source, keras.layers.Flatten(data_format="channels_first", name="flat")(source))
    (layer,) = read_keras(model).unsupported
    assert (layer.place, layer.reason) == ("flat", "Flatten with channels first")


def test_a_dense_layer_of_a_picture_is_a_convolution(keras: Any, compute: Compute) -> None:
    source = keras.Input((5, 6, 4))
    model = randomized(keras.Model(source, keras.layers.Dense(3, activation="relu")(source)))
    network = read_keras(model)
    assert [operator.kind for operator in network.operators] == [OperatorKind.CONVOLUTION]
    check_equal(model, network, compute, (5, 6, 4))
    row = keras.Input((5, 4))
    (layer,) = read_keras(keras.Model(row, keras.layers.Dense(3)(row))).unsupported
    assert layer.reason == "Dense of 2 dimensions"


def test_a_sequential_model_is_read(keras: Any, compute: Compute) -> None:
    layers = keras.layers
    model = randomized(keras.Sequential([keras.Input((9,)), layers.Dense(7, activation="tanh"), layers.Dense(3)]))
    network = read_keras(model)
    assert [operator.activation.value for operator in network.operators] == ["tanh", "none"]
    check_equal(model, network, compute, (9,))


def test_a_cell_with_a_memory_is_its_gates_and_its_states(keras: Any) -> None:
    source, hidden, carry = (keras.Input((size,)) for size in (5, 7, 7))
    made, states = keras.layers.LSTMCell(7, name="cell")(source, [hidden, carry])
    network = read_keras(keras.Model([source, hidden, carry], [made, *states]))
    assert [operator.kind.value for operator in network.operators] == [
        "concatenate", "dense", "lstm_state", "reshape", "lstm_state",
    ]  # fmt: skip
    assert network.operators[1].inputs[0].shape == (12,) and network.operators[1].output.shape == (28,)
    assert network.outputs == tuple(operator.output for operator in network.operators[2:])
    assert [operator.settings for operator in network.operators[2::2]] == [{"is_hidden": 1}, {"is_hidden": 0}]


def test_a_memory_that_cannot_be_an_operator_says_what_can_be(keras: Any) -> None:
    layers = keras.layers
    words, hidden, carry = keras.Input((None,)), keras.Input((4,)), keras.Input((4,))
    value = layers.LSTM(4, name="sequence")(layers.Embedding(10, 4, name="embedded")(words))
    value, states = layers.LSTMCell(4, activation="relu", name="cell")(value, [hidden, carry])
    model = keras.Model([words, hidden, carry], [value, *states])
    assert {each.place: each.reason for each in read_keras(model).unsupported} == {
        "embedded": "there is no operator for Embedding; let the model take the embedded vector as its input",
        "sequence": "there is no operator for LSTM over a sequence; make the model that of one step, with an LSTMCell "
        "whose states are inputs and outputs",
        "cell": "LSTMCell with the activations relu and sigmoid; leave it tanh and sigmoid",
    }


def test_what_cannot_be_an_operator_is_named_with_its_place(keras: Any) -> None:
    layers = keras.layers
    source = keras.Input((8, 8, 4))
    value = layers.Conv2DTranspose(4, 3, name="up")(source)
    value = layers.Conv2D(4, 3, activation="softsign", name="soft")(value)
    value = layers.Add(name="three")([value, value, value])
    value = layers.Concatenate(axis=1, name="rows")([value, value])
    value = layers.BatchNormalization(axis=1, name="norm")(value)
    value = layers.ReLU(6.0, negative_slope=0.1, name="leaky")(value)
    value = layers.Softmax(axis=1, name="columns")(value)
    value = layers.Multiply(name="attention")([value, layers.Conv2D(1, 1)(value)])
    value = 2.0 / value
    found = {
        each.place.rstrip("_0123456789"): each.reason for each in read_keras(keras.Model(source, value)).unsupported
    }
    assert found == {
        "up": "there is no operator for Conv2DTranspose",
        "soft": "Conv2D with the activation softsign",
        "three": "Add of 3 tensors",
        "rows": "Concatenate along axis 1",
        "norm": "BatchNormalization along axis 1",
        "leaky": "ReLU with a threshold, a max_value of 6.0 or both this and a negative_slope",
        "columns": "Softmax along axis 1",
        "attention": "Multiply of 16x8x4 and 16x8x1",
        "true_divide": "TrueDivide that is not by a constant of each channel",
    }
    anywhere = keras.Input((None, None, 3))
    (layer,) = read_keras(keras.Model(anywhere, layers.Conv2D(4, 3, name="free")(anywhere))).unsupported
    assert layer.reason == "Conv2D with a shape that is only known when it runs"

    class Own(keras.Model):
        """Its layers are known when it runs."""

    (whole,) = read_keras(Own(name="own")).unsupported
    assert whole.place == "own" and "neither functional nor sequential" in whole.reason
