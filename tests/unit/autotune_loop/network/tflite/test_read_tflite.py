"""A TensorFlow Lite model as operators: in floats as Keras's, in bytes as it is; what cannot be read is told."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.network.models import read_model
from halide_autotune.autotune_loop.network.operators import Activation, Network, Operator, OperatorKind
from halide_autotune.autotune_loop.network.read_keras import read_keras
from halide_autotune.autotune_loop.network.tasks import tasks_of
from halide_autotune.autotune_loop.network.tflite.read_tflite import read_tflite
from halide_autotune.autotune_loop.network.tflite.tflite_weights import tflite_weights
from halide_autotune.targets.errors import NetworkError
from tests.tflite_models import Interpreted, check_operators, computed, randomized, write_tflite

pytestmark = pytest.mark.toolchain


def small(keras: Any) -> Any:
    """With what networks for pictures have."""
    layers = keras.layers
    source = keras.Input(batch_shape=(1, 12, 11, 5))
    value = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu", name="first")(source)
    inner = layers.DepthwiseConv2D(3, padding="same", activation="relu6", name="deep")(value)
    inner = layers.Conv2D(8, 1, name="point")(inner)
    value = layers.ReLU(name="joined")(layers.Add()([inner, value]))
    value = layers.Conv2D(8, 3, activation="silu", name="gated")(layers.ZeroPadding2D(1)(value))
    value = layers.Concatenate()([value, layers.MaxPooling2D(3, 1, padding="same")(value)])
    value = layers.GlobalAveragePooling2D()(layers.AveragePooling2D(2)(value))
    value = layers.Dense(9, activation="sigmoid", name="hidden")(value)
    return randomized(keras.Model(source, layers.Dense(7, activation="softmax", name="head")(value), name="small"))


@pytest.fixture(scope="module")
def model(keras: Any) -> Any:
    return small(keras)


@pytest.fixture(scope="module")
def int8_file(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tflite(model, tmp_path_factory.mktemp("int8") / "small.tflite", is_int8=True)


def told(operator: Operator) -> tuple[Any, ...]:
    """All but names."""
    shapes = tuple(each.shape for each in operator.inputs)
    return operator.kind, shapes, operator.output.shape, dict(operator.settings), operator.activation


def test_a_model_of_floats_has_the_operators_of_its_keras_model(model: Any, tmp_path: Path) -> None:
    path = write_tflite(model, tmp_path / "small.tflite", is_int8=False)
    network, of_keras = read_tflite(path), read_keras(model)
    assert network.unsupported == () and network.name == "small"
    assert [told(each) for each in network.operators] == [told(each) for each in of_keras.operators]
    assert [task.title for task in tasks_of(network.operators)] == [task.title for task in tasks_of(of_keras.operators)]
    check_operators(network, tflite_weights(path, network), Interpreted(path))


def test_activations_and_differences_of_floats(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    source = keras.Input(batch_shape=(1, 6, 5, 4))
    value = layers.LeakyReLU(0.3)(layers.Conv2D(4, 3, name="first")(source))
    value = layers.ReLU()(layers.Subtract()([value, layers.Activation("gelu")(layers.Conv2D(4, 1)(value))]))
    mean = layers.GlobalAveragePooling2D(keepdims=True)(value)
    value = layers.ELU()(layers.Conv2D(3, 1)(layers.Activation("hard_swish")(layers.Subtract()([mean, value]))))
    model = randomized(keras.Model(source, [value - 1.5, 1.5 - value]))
    path = write_tflite(model, tmp_path / "activations.tflite", is_int8=False)
    network = read_tflite(path)
    assert network.unsupported == ()
    found = {(each.kind.value, each.activation.value) for each in network.operators}
    wanted = {("convolution", each) for each in ("leaky_relu", "gelu", "elu")}
    assert found >= {*wanted, ("subtract", "relu"), ("subtract", "hard_swish"), ("scale", "none")}
    assert {round(each.slope, 6) for each in network.operators} == {0.0, 0.3, 1.0}
    check_operators(network, tflite_weights(path, network), Interpreted(path, has_elu=True))


def test_activations_that_are_fused_into_what_does_none_come_after_it(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    source = keras.Input(batch_shape=(1, 12, 10, 4))
    value = layers.ReLU()(layers.AveragePooling2D(2)(layers.Conv2D(4, 3, padding="same")(source)))
    value = layers.ReLU(6.0)(layers.MaxPooling2D(2)(layers.Conv2D(4, 1)(value) * 9.0))
    gate = layers.Conv2D(4, 1, name="gate")(value)
    value = layers.ReLU()(layers.Multiply()([gate, layers.Activation("sigmoid")(gate)]))
    model = randomized(keras.Model(source, value))
    path = write_tflite(model, tmp_path / "fused.tflite", is_int8=False)
    network = read_tflite(path)
    assert network.unsupported == ()
    after_pools = [
        (one.kind.value, other.activation.value)
        for one, other in pairwise(network.operators)
        if one.kind is OperatorKind.POOL
    ]
    assert after_pools == [("pool", "relu"), ("pool", "relu6")]
    assert network.operators[-1].activation is Activation.RELU, "x·sigmoid(x) is not all"
    check_operators(network, tflite_weights(path, network), Interpreted(path))


def test_a_network_of_bytes_computes_what_the_reference_does(int8_file: Path) -> None:
    """Each operator takes what those before it have computed."""
    network, wanted = read_tflite(int8_file), Interpreted(int8_file)
    assert network.unsupported == ()
    tensors = {each.name: wanted.tensor(each.name, each.shape) for each in network.inputs}
    for operator, weights in zip(network.operators, tflite_weights(int8_file, network), strict=True):
        inputs = [tensors[each.name] for each in operator.inputs]
        tensors[operator.output.name] = computed(operator, inputs, weights)
    (output,) = network.outputs
    np.testing.assert_array_equal(tensors[output.name], wanted.tensor(output.name, output.shape))
    assert len(np.unique(tensors[output.name])) > 2


def test_bytes_are_rounded_by_each_operator_and_differ_in_no_task_by_their_scales(int8_file: Path) -> None:
    network = read_model(str(int8_file))
    kinds = [operator.kind for operator in network.operators]
    assert kinds[0] is OperatorKind.QUANTIZE and kinds[-1] is OperatorKind.DEQUANTIZE
    assert OperatorKind.ADD in kinds and OperatorKind.PAD not in kinds, "padding is done in the convolution"
    tasks = tasks_of(network.operators)
    titles = [task.title for task in tasks]
    assert "int8 convolution 1x1 of 6x6x8 to 6x6x8" in titles and "int8 add of 6x6x8 and 6x6x8 to 6x6x8" in titles
    cutting = (Activation.RELU, Activation.RELU6)
    assert not any(task.activation in cutting for task in tasks), "their limits come with each call"


def test_what_has_no_operator_is_named_with_its_place(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    source = keras.Input(batch_shape=(1, 8, 8, 4))
    value = layers.Conv2DTranspose(4, 3, name="up")(source)
    value = layers.Concatenate(axis=1, name="rows")([value, value])
    path = write_tflite(randomized(keras.Model(source, value)), tmp_path / "strange.tflite", is_int8=False)
    found = {each.reason: each.place for each in read_tflite(path).unsupported}
    assert "there is no operator for TRANSPOSE_CONV" in found and "CONCATENATION along axis 1, or of constants" in found
    assert found["CONCATENATION along axis 1, or of constants"].partition(" ")[0].isdecimal()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "There is no model damaged.tflite. Check the path."),
        (b"", "damaged.tflite cannot be read as a TensorFlow Lite model"),
        (
            b"no model of anything",
            "damaged.tflite cannot be read as a TensorFlow Lite model: it does not begin as one.",
        ),
        (b"\xff\xff\xff\x7fTFL3" + bytes(64), "damaged.tflite cannot be read as a TensorFlow Lite model"),
    ],
)
@pytest.mark.usefixtures("tensorflow_ready")
def test_what_is_no_model_is_one_sentence(
    content: bytes | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "damaged.tflite").write_bytes(content)
    with pytest.raises(NetworkError) as raised:
        read_model("damaged.tflite")
    assert said in str(raised.value) and "\n" not in str(raised.value)


@given(data=st.data())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_a_network_or_an_error(data: st.DataObject, int8_file: Path, tmp_path: Path) -> None:
    content = bytearray(int8_file.read_bytes())
    for _ in range(data.draw(st.integers(0, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    path = tmp_path / "damaged.tflite"
    path.write_bytes(content[:length])
    found = _read_or_none(lambda: read_tflite(path))
    if found is not None:
        assert isinstance(found, Network)
        if not found.unsupported:
            tflite_weights(path, found)
            tasks_of(found.operators)


def _read_or_none(read: Callable[[], Network]) -> Network | None:
    try:
        return read()
    except NetworkError as error:
        assert "\n" not in str(error)
        return None
