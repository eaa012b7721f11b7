"""From tasks to generators: the parameters are those that the generators declare, and say what the tasks are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.network.int8.int8_weights import PackedLayout
from halide_autotune.autotune_loop.network.operator_generators import OperatorGenerator, operator_generators
from halide_autotune.autotune_loop.network.operators import OperatorKind
from halide_autotune.autotune_loop.network.read_keras import read_keras
from halide_autotune.autotune_loop.network.tasks import tasks_of
from halide_autotune.autotune_loop.network.tflite.read_tflite import read_tflite
from tests.generator_files import generator_file
from tests.tflite_models import randomized, write_tflite

pytestmark = pytest.mark.toolchain


def declared(generator: OperatorGenerator) -> set[str]:
    """The parameters that a generator has, its bases' included."""
    import halide as hl

    made = getattr(generator_file(generator.file.stem), "".join(map(str.capitalize, generator.name.split("_"))))
    return {name for name in dir(made) if isinstance(getattr(made, name), hl.GeneratorParam)}


def test_every_parameter_is_one_that_the_generator_has(keras: Any) -> None:
    layers = keras.layers
    source = keras.Input((8, 8, 4))
    value = layers.Conv2D(4, 3, padding="same", groups=2)(source)
    gate = layers.Reshape((1, 1, 4))(layers.GlobalMaxPooling2D()(layers.DepthwiseConv2D(3)(value)))
    value = layers.BatchNormalization()(layers.Multiply()([layers.ReLU()(layers.MaxPooling2D()(value)), gate]))
    value = layers.Concatenate()([value, layers.Add()([value, value])])
    value = layers.Dense(3, activation="softmax")(layers.Flatten()(value))
    value, states = layers.LSTMCell(3)(value, [value, value])
    generators, rest = operator_generators(tasks_of(read_keras(keras.Model(source, [value, *states])).operators))
    assert {each.name for each in generators} == {
        "convolution", "depthwise_convolution", "pool", "global_pool", "elementwise", "dense", "softmax",
        "lstm_state",
    }  # fmt: skip
    assert [task.kind for task in rest] == [OperatorKind.CONCATENATE] * 2
    for each in generators:
        assert len(each.parameters) == len(each.calls) == len(each.tasks)
        for parameters in each.parameters:
            names = {text.partition("=")[0] for text in parameters}
            assert names <= declared(each), each.name
    (state,) = [each for each in generators if each.name == "lstm_state"]
    assert {parameters: task.title for parameters, task in zip(state.parameters, state.tasks, strict=True)} == {
        ("units=3", "is_hidden=true"): "lstm_state of 12 and 3 to 3, hidden",
        ("units=3", "is_hidden=false"): "lstm_state of 12 and 3 to 3, carry",
    }
    (elementwise,) = [each for each in generators if each.name == "elementwise"]
    told = {text for parameters in elementwise.parameters for text in parameters}
    assert {"operation=add", "operation=multiply", "operation=scale", "spreads=true", "spreads=false"} <= told
    (convolution,) = [each for each in generators if each.name == "convolution"]
    assert {"groups=2", "has_bias=true", "adds=false", "pad_rows_before=1", "rows=8"} <= set(convolution.parameters[0])


def test_vectors_and_rows_are_pictures_to_what_looks_at_each_pixel_alone(keras: Any) -> None:
    layers = keras.layers
    source = keras.Input((6, 4))
    value = layers.Reshape((24,))(layers.Softmax()(layers.BatchNormalization()(layers.ReLU()(source))))
    value = layers.Multiply()([value, layers.Dense(24)(layers.Flatten()(source))])
    generators, rest = operator_generators(tasks_of(read_keras(keras.Model(source, value)).operators))
    assert not rest
    told = {each.name: [set(parameters) for parameters in each.parameters] for each in generators}
    assert told["softmax"] == [{"channels_in=4", "pixels=6"}]
    assert {"rows=1", "columns=6", "channels_in=4", "operation=scale"} <= told["elementwise"][1]
    assert {"rows=1", "columns=1", "channels_in=24", "operation=multiply"} <= told["elementwise"][2]


def test_numbers_of_a_row_are_channels_to_what_looks_at_each_alone(keras: Any) -> None:
    layers = keras.layers
    source = keras.Input((8, 6, 3))
    gate = layers.GlobalMaxPooling2D(keepdims=True)(source)
    value = layers.Multiply()([layers.Add()([layers.ReLU()(source), source]), gate])
    generators, _ = operator_generators(tasks_of(read_keras(keras.Model(source, value)).operators))
    (elementwise,) = [each for each in generators if each.name == "elementwise"]
    told = [set(parameters) for parameters in elementwise.parameters]
    flat = {"rows=8", "columns=1", "channels_in=18"}
    assert [flat <= one for one in told if "operation=add" in one or "operation=none" in one] == [True] * 2
    # The factors of a product are one for each channel.
    assert {"rows=8", "columns=6", "channels_in=3", "spreads=true"} <= next(
        t for t in told if "operation=multiply" in t
    )


def test_operators_of_bytes_have_generators_of_their_own(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    source = keras.Input(batch_shape=(1, 8, 8, 4))
    first = layers.Conv2D(4, 3, padding="same", activation="relu")(source)
    second = layers.Conv2D(4, 3, padding="same", activation="relu6")(first)
    value = layers.Multiply()([layers.Add()([first, second]), layers.Activation("tanh")(first)])
    value = layers.Rescaling(2.0)(layers.MaxPooling2D()(layers.DepthwiseConv2D(3)(value)))
    value = layers.Dense(3, activation="softmax")(layers.GlobalAveragePooling2D()(value))
    path = write_tflite(randomized(keras.Model(source, value)), tmp_path / "model.tflite", is_int8=True)
    generators, rest = operator_generators(tasks_of(read_tflite(path).operators), PackedLayout(depth=2))
    assert not rest and {each.name for each in generators} == {
        "int8_convolution", "int8_depthwise_convolution", "int8_dense", "int8_pool", "int8_global_pool", "int8_add",
        "int8_multiply", "int8_lookup", "int8_softmax", "quantize", "dequantize",
    }  # fmt: skip
    for each in generators:
        for parameters in each.parameters:
            assert {text.partition("=")[0] for text in parameters} <= declared(each), each.name
    (convolution,) = [each for each in generators if each.name == "int8_convolution"]
    assert convolution.calls == (2.0,), "what cuts off is no other pipeline"
    assert {"depth=2", "block=16", "channels_out=4", "groups=1"} <= set(convolution.parameters[0])
    (multiply,) = [each for each in generators if each.name == "int8_multiply"]
    assert {text for parameters in multiply.parameters for text in parameters} >= {"spreads=true", "spreads=false"}
