"""The operators' generators compute what TensorFlow does, for every setting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.network.operators import Activation, Operator, OperatorKind, Tensor
from halide_autotune.autotune_loop.network.packed_floats import blocks_of
from tests.activations import ACTIVATIONS, SLOPE
from tests.generator_files import generator_file

pytestmark = pytest.mark.toolchain
Picture = Any
SMALL = {"rows": 11, "columns": 9, "channels_in": 8}
PLAIN = {"has_bias": True, "adds": False, "activation": "none", "slope": SLOPE}
SAME = {f"pad_{axis}_{end}": 1 for axis in ("rows", "columns") for end in ("before", "after")}


def computed(name: str, settings: dict[str, Any], inputs: list[Picture], shape: tuple[int, ...]) -> Picture:
    """What a generator computes, with every Func at root."""
    import halide as hl

    with hl.GeneratorContext(hl.get_host_target()):
        made = getattr(generator_file("float_operators"), name).call(*map(hl.Buffer, inputs), generator_params=settings)
        return np.asarray(made.realize([*reversed(shape)]))


def drawn(*shape: int, seed: int = 1) -> Picture:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def padded(picture: Picture, settings: dict[str, Any], outside: float = 0.0) -> Picture:
    pads = [[settings.get(f"pad_{axis}_{end}", 0) for end in ("before", "after")] for axis in ("rows", "columns")]
    return np.pad(picture, [*pads, [0, 0]], constant_values=outside)[None]


def steps(settings: dict[str, Any], what: str) -> list[int]:
    return [settings.get(f"{what}_rows", 1), settings.get(f"{what}_columns", 1)]


def with_the_rest(wanted: Picture, inputs: list[Picture], settings: dict[str, Any]) -> Picture:
    """What a reduction does to its result; adds the inputs that it takes for that."""
    if settings["has_bias"]:
        inputs.append(drawn(wanted.shape[-1], seed=2))
        wanted = wanted + inputs[-1]
    if settings["adds"]:
        inputs.append(drawn(*wanted.shape, seed=3))
        wanted = wanted + inputs[-1]
    return ACTIVATIONS[Activation(settings["activation"])](wanted)


def check(name: str, settings: dict[str, Any], inputs: list[Picture], wanted: Picture) -> None:
    np.testing.assert_allclose(computed(name, settings, inputs, wanted.shape), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        SAME,
        {**SAME, "stride_rows": 2, "stride_columns": 2, "pad_rows_after": 0},
        {"dilation_rows": 2, "kernel_columns": 1, "has_bias": False},
        {**SAME, "groups": 4, "activation": "relu"},
        {**SAME, "block": 4, "activation": "relu6", "adds": True},
        {"kernel_rows": 1, "kernel_columns": 1, "block": 6, "groups": 2},
        {**SAME, "channels_out": 128, "block": 128},
        *({"activation": each.value, "adds": True, "has_bias": False} for each in Activation),
    ],
)
def test_a_convolution_computes_what_tensorflow_does(settings: dict[str, Any], tensorflow_ready: None) -> None:
    import tensorflow as tf

    known: dict[str, Any] = {"kernel_rows": 3, "kernel_columns": 3, "groups": 1, "block": 0, "channels_out": 12}
    known |= {**PLAIN, **SMALL, **settings}
    picture, groups = drawn(known["rows"], known["columns"], known["channels_in"]), known["groups"]
    shape = (known["kernel_rows"], known["kernel_columns"], known["channels_in"] // groups, known["channels_out"])
    weights = drawn(*shape, seed=4)
    parts = zip(tf.split(padded(picture, known), groups, -1), tf.split(weights, groups, -1), strict=True)
    strides, dilations = steps(known, "stride"), steps(known, "dilation")
    found = [tf.nn.conv2d(part, kernel, strides, "VALID", dilations=dilations) for part, kernel in parts]
    packed = weights
    if block := known["block"]:  # channels out of a block side by side
        packed = np.moveaxis(weights.reshape(*shape[:3], shape[3] // block, block), 3, 0)
    inputs = [picture, np.ascontiguousarray(packed)]
    wanted = with_the_rest(np.asarray(tf.concat(found, -1))[0], inputs, known)
    check("Convolution", known, inputs, wanted)


@pytest.mark.parametrize("target", ["arm-64-linux", "x86-64-linux-avx-avx2-f16c-fma-sse41"])
def test_a_block_may_have_more_vectors_than_are_summed_at_once(target: str) -> None:
    import halide as hl

    operator = Operator(OperatorKind.CONVOLUTION, (), (), Tensor("made", (9, 7, 64)), {})
    convolution = generator_file("float_operators").Convolution
    for block in blocks_of(operator):
        known = {"kernel_rows": 3, "kernel_columns": 3, "groups": 1, "channels_out": 64, "block": block, **PLAIN}
        taken = [drawn(11, 9, 8), drawn(64 // block, 3, 3, 8, block), drawn(64)]
        with hl.GeneratorContext(hl.Target(target)):
            made = convolution.call(*map(hl.Buffer, taken), generator_params={**known, **SMALL})
        made.compile_to_lowered_stmt("/dev/null", made.infer_arguments(), target=hl.Target(target))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {**SAME, "multiplier": 2, "activation": "relu6"},
        {**SAME, "stride_rows": 2, "stride_columns": 2, "adds": True, "has_bias": False},
        {"dilation_rows": 2, "dilation_columns": 2},
    ],
)
def test_a_depthwise_convolution_computes_what_tensorflow_does(
    settings: dict[str, Any], tensorflow_ready: None
) -> None:
    import tensorflow as tf

    known: dict[str, Any] = {"kernel_rows": 3, "kernel_columns": 3, "multiplier": 1, **PLAIN, **SMALL, **settings}
    picture = drawn(known["rows"], known["columns"], known["channels_in"])
    weights = drawn(3, 3, known["channels_in"], known["multiplier"], seed=4)
    strides, dilations = [1, *steps(known, "stride"), 1], steps(known, "dilation")
    found = tf.nn.depthwise_conv2d(padded(picture, known), weights, strides, "VALID", dilations=dilations)
    inputs = [picture, weights.reshape(3, 3, -1)]
    check("DepthwiseConvolution", known, inputs, with_the_rest(np.asarray(found)[0], inputs, known))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"has_bias": False, "adds": True, "activation": "sigmoid"},
        {"channels_out": 48, "block": 16, "activation": "relu"},
        {"channels_in": 6600, "channels_out": 40, "block": 8},
    ],
)
def test_a_dense_layer_computes_a_product(settings: dict[str, Any]) -> None:
    known: dict[str, Any] = {**PLAIN, "channels_in": 20, "channels_out": 7, "block": 0, **settings}
    channels, block = known["channels_out"], known["block"]
    source, weights = drawn(known["channels_in"]), drawn(known["channels_in"], channels, seed=4)
    packed = np.moveaxis(weights.reshape(-1, channels // block, block), 1, 0) if block else weights
    inputs = [source, np.ascontiguousarray(packed)]
    check("Dense", known, inputs, with_the_rest(source @ weights, inputs, known))


@pytest.mark.parametrize("is_max", [True, False])
@pytest.mark.parametrize("settings", [{}, {**SAME, "kernel_rows": 3, "kernel_columns": 3, "stride_columns": 1}])
def test_a_pool_computes_what_tensorflow_does(settings: dict[str, Any], is_max: bool, tensorflow_ready: None) -> None:
    import tensorflow as tf

    known = {"kernel_rows": 2, "kernel_columns": 2, "stride_rows": 2, "stride_columns": 2, **SMALL, **settings}
    known["is_max"] = is_max
    picture = drawn(known["rows"], known["columns"], known["channels_in"])
    window, strides = [known["kernel_rows"], known["kernel_columns"]], steps(known, "stride")
    if is_max:
        found = tf.nn.max_pool2d(padded(picture, known, -np.inf), window, strides, "VALID")
    else:  # what is outside does not count
        sums = tf.nn.avg_pool2d(padded(picture, known), window, strides, "VALID")
        found = sums / tf.nn.avg_pool2d(padded(np.ones_like(picture), known), window, strides, "VALID")
    check("Pool", known, [picture], np.asarray(found)[0])


def test_pools_of_whole_pictures_and_softmax() -> None:
    picture = drawn(5, 6, 8)
    shape = {"rows": 5, "columns": 6, "channels_in": 8}
    check("GlobalPool", {**shape, "is_max": False}, [picture], picture.mean(axis=(0, 1)))
    check("GlobalPool", {**shape, "is_max": True}, [picture], picture.max(axis=(0, 1)))
    source = 50 * drawn(4, 33)
    powers = np.exp(source - source.max(axis=-1, keepdims=True))
    check("Softmax", {"channels_in": 33, "pixels": 4}, [source], powers / powers.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("activation", ["none", "silu", "leaky_relu"])
def test_what_touches_each_number_once(activation: str) -> None:
    first, second, few = drawn(5, 6, 8), drawn(5, 6, 8, seed=2), drawn(1, 1, 8, seed=3)
    shape = {"rows": 5, "columns": 6, "channels_in": 8, "activation": activation, "slope": SLOPE, "spreads": False}
    after = ACTIVATIONS[Activation(activation)]
    check("Elementwise", {**shape, "operation": "add"}, [first, second], after(first + second))
    check("Elementwise", {**shape, "operation": "multiply"}, [first, second], after(first * second))
    check("Elementwise", {**shape, "operation": "multiply", "spreads": True}, [first, few], after(first * few))
    less = {**shape, "operation": "subtract"}
    check("Elementwise", less, [first, second], after(first - second))
    check("Elementwise", {**less, "spreads": True, "reverses": True}, [first, few], after(few - first))
    factors, offsets = drawn(8, seed=4), drawn(8, seed=5)
    check("Elementwise", {**shape, "operation": "scale"}, [first, factors, offsets], after(first * factors + offsets))
    check("Elementwise", {**shape, "operation": "none"}, [first], after(first))


def test_the_states_of_a_long_short_term_memory_are_keras_s(keras: Any) -> None:
    cell = keras.layers.LSTMCell(7)
    source, hidden, carry = drawn(5), drawn(7, seed=2), drawn(7, seed=3)
    _, states = cell(source[None], [hidden[None], carry[None]])
    weights, of_hidden, bias = (np.asarray(each) for each in cell.get_weights())
    gates = source @ weights + hidden @ of_hidden + bias
    for is_hidden, wanted in zip((True, False), states, strict=True):
        check("LstmState", {"units": 7, "is_hidden": is_hidden}, [gates, carry], np.asarray(wanted)[0])
