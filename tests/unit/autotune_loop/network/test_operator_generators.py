"""From tasks to generators: the parameters are those that the generators declare, and say what the tasks are."""

from __future__ import annotations

import re
from typing import Any

import pytest

from halide_autotune.autotune_loop.network.operator_generators import OPERATORS_FILE, operator_generators
from halide_autotune.autotune_loop.network.operators import OperatorKind
from halide_autotune.autotune_loop.network.read_keras import read_keras
from halide_autotune.autotune_loop.network.tasks import tasks_of

pytestmark = pytest.mark.toolchain


def declared(name: str) -> set[str]:
    """The parameters that a generator has, its bases' included, by its text."""
    text = OPERATORS_FILE.read_text()
    found = re.search(rf'@hl\.generator\(name="{name}"\)\nclass \w+\(([\w., ]+)\)', text)
    assert found is not None
    bodies = [
        text[found.end() :],
        *(text.split(f"class {base}(")[1] for base in found[1].split(", ") if f"class {base}(" in text),
    ]
    return {
        parameter
        for body in bodies
        for parameter in re.findall(
            r"^    (\w+) = hl\.GeneratorParam", re.split(r"\n(?:class|@)", body)[0], re.MULTILINE
        )
    }


def test_every_parameter_is_one_that_the_generator_has(keras: Any) -> None:
    layers = keras.layers
    source = keras.Input((8, 8, 4))
    value = layers.Conv2D(4, 3, padding="same", groups=2)(source)
    gate = layers.Reshape((1, 1, 4))(layers.GlobalMaxPooling2D()(layers.DepthwiseConv2D(3)(value)))
    value = layers.BatchNormalization()(layers.Multiply()([layers.ReLU()(layers.MaxPooling2D()(value)), gate]))
    value = layers.Concatenate()([value, layers.Add()([value, value])])
    model = keras.Model(source, layers.Dense(3, activation="softmax")(layers.Flatten()(value)))
    generators, rest = operator_generators(tasks_of(read_keras(model).operators))
    assert {each.name for each in generators} == {
        "convolution", "depthwise_convolution", "pool", "global_pool", "elementwise", "dense", "softmax",
    }  # fmt: skip
    assert [task.kind for task in rest] == [OperatorKind.CONCATENATE]
    for each in generators:
        assert len(each.parameters) == len(each.calls) == len(each.tasks)
        for parameters in each.parameters:
            names = {text.partition("=")[0] for text in parameters}
            assert names <= declared(each.name), each.name
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
