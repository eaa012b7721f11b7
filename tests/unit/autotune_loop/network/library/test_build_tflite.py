"""A whole `.tflite` network, built by the real compilers and run: every layer computes what TensorFlow Lite does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.network.models import open_model
from halide_autotune.autotune_loop.network.operators import Network, OperatorKind
from halide_autotune.autotune_loop.network.tflite.tflite_model import TfliteModel
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import NetworkError
from tests.network_libraries import built, check_built
from tests.tflite_models import Interpreted, randomized, with_output_scale, write_tflite

pytestmark = pytest.mark.toolchain


def every_operator(keras: Any) -> Any:
    """With a pad and a concatenation that stand alone, constants, and an output that another operator takes."""
    layers = keras.layers
    source = keras.Input(batch_shape=(1, 9, 7, 3), name="picture")
    value = layers.Rescaling(1.5, -0.25)(source)
    value = layers.Conv2D(10, 3, strides=2, padding="same", activation="relu6")(value)
    deep = layers.DepthwiseConv2D(3, padding="same", activation="relu")(value)
    value = layers.Concatenate()([deep, layers.Add()([value, deep]), layers.Activation("tanh")(value)])
    padded = layers.ZeroPadding2D(((1, 0), (0, 2)))(value)
    value = layers.Multiply()([padded, layers.Activation("sigmoid")(padded)])
    value = layers.AveragePooling2D(2)(layers.MaxPooling2D(2, strides=1)(value))
    gate = layers.GlobalAveragePooling2D(keepdims=True)(value)
    value = layers.Dense(5)(layers.Flatten()(layers.Multiply()([value, gate])))
    return randomized(keras.Model(source, [layers.Softmax()(value), gate], name="every"))


@pytest.fixture(scope="module")
def model(keras: Any) -> Any:
    return every_operator(keras)


@pytest.mark.parametrize(("target", "ends"), [("x86-64", "int8"), ("arm64", "float32")])
def test_bytes_are_those_of_the_reference(
    model: Any, target: str, ends: str, settings: Settings, tmp_path: Path
) -> None:
    path = write_tflite(model, tmp_path / "every.tflite", is_int8=True, ends=ends)
    opened = open_model(str(path))
    kinds = {operator.kind for operator in opened.network.operators}
    assert {OperatorKind.PAD, OperatorKind.CONCATENATE, OperatorKind.SOFTMAX, OperatorKind.ADD} <= kinds
    made = built(opened, target, settings, tmp_path / "made")
    check_built(opened, made, target, settings, tmp_path)
    header = made.header.read_text()
    c_type = {"float32": "float", "int8": "int8_t"}[ends]
    assert f"int every_run(const {c_type} *const inputs[], {c_type} *const outputs[], void *workspace);" in header
    told = re.search(r"inputs\[0\]: 9x7x3, 189 numbers of the type (\w+)(.*)", header)
    assert told is not None and told[1] == c_type and ("n stands for 0." in told[2]) == (ends == "int8")


def test_outputs_may_be_of_floats_and_of_bytes(model: Any, settings: Settings, tmp_path: Path) -> None:
    opened = open_model(str(write_tflite(model, tmp_path / "every.tflite", is_int8=True)))
    assert isinstance(opened, TfliteModel)
    network = opened.network
    (of_bytes,) = [each.inputs[0] for each in network.operators if each.output == network.outputs[0]]
    mixed = replace(opened, network=replace(network, outputs=(network.outputs[0], of_bytes)))
    made = built(mixed, "x86-64", settings, tmp_path / "made")
    check_built(mixed, made, "x86-64", settings, tmp_path)
    assert "_run(const float *const inputs[], void *const outputs[], void *workspace);" in made.header.read_text()


def test_floats_are_nearly_those_of_the_reference(model: Any, settings: Settings, tmp_path: Path) -> None:
    opened = open_model(str(write_tflite(model, tmp_path / "every.tflite", is_int8=False)))
    made = built(opened, "x86-64", settings, tmp_path / "made")
    check_built(opened, made, "x86-64", settings, tmp_path)


def right_tensors(network: Network, right: Interpreted) -> tuple[list[Any], dict[str, Any]]:
    """A network's inputs, and what its operators make of them, by name; both may be changed."""
    inputs = [right.tensor(each.name, (1, *each.shape)) for each in network.inputs]
    made = {each.output.name: right.tensor(each.output.name, each.output.shape).copy() for each in network.operators}
    return inputs, made


def test_a_byte_that_is_off_by_one_is_found(model: Any, tmp_path: Path) -> None:
    path = write_tflite(model, tmp_path / "every.tflite", is_int8=True)
    opened, right = open_model(str(path)), Interpreted(path)
    network = opened.network
    inputs, made = right_tensors(network, right)
    computed = [each for each in network.operators if each.kind is not OperatorKind.RESHAPE]
    outputs = [made[each.name].copy() for each in network.outputs]
    checked = opened.check(inputs, made, outputs).layers
    assert [each and each.name for each in checked] == ["+".join(each.places) for each in computed]
    assert all(each is not None and each.is_right and each.tolerance == 0 for each in checked)
    made[computed[2].output.name].flat[0] ^= 1
    outputs[1].flat[3] += 0.01
    found = opened.check(inputs, made, outputs)
    wrong = [index for index, each in enumerate(found.layers) if each and not each.is_right]
    assert wrong == [2]
    assert [(each.is_right, each.is_wrong) for each in found.outputs] == [(True, False), (False, True)]


def test_elu_is_compared_with_kernels_that_are_not_the_reference_s(keras: Any, tmp_path: Path) -> None:
    source = keras.Input(batch_shape=(1, 4, 4, 2))
    model = randomized(keras.Model(source, keras.layers.ELU()(keras.layers.Conv2D(3, 1)(source))))
    path = write_tflite(model, tmp_path / "elu.tflite", is_int8=True)
    opened, right = open_model(str(path)), Interpreted(path, has_elu=True)
    network = opened.network
    inputs, made = right_tensors(network, right)
    found = opened.check(inputs, made, [made[each.name] for each in network.outputs])
    checked = [each for each in (*found.layers, *found.outputs) if each is not None]
    assert all(each.is_right and each.tolerance > 0 for each in checked), "bytes may be rounded to a neighbour"


def test_a_file_that_ends_the_interpreter_is_one_sentence(keras: Any, tmp_path: Path) -> None:
    first, second = (keras.Input(batch_shape=(1, 4, 4, 2)) for _ in range(2))
    model = keras.Model([first, second], keras.layers.Add()([first, second]))
    path = write_tflite(model, tmp_path / "sum.tflite", is_int8=True, ends="int8")
    opened = open_model(str(path))
    inputs = opened.random_inputs()

    def said() -> str:
        with pytest.raises(NetworkError) as raised:
            opened.check(inputs, {opened.network.outputs[0].name: inputs[0]}, [inputs[0]])
        assert "\n" not in str(raised.value)
        return str(raised.value)

    # The sum would be shifted to the left, which its kernel ends the process for.
    with_output_scale(path, 1e-12)
    ended = f"TensorFlow Lite's process was ended by SIGABRT while it computed {path}."
    assert (
        said() == f"{ended} Convert the model again: it may be damaged, or have scales that no kernel can compute with."
    )
    path.write_bytes(b"no model")
    assert said().startswith(f"TensorFlow Lite cannot compute {path}: ")


def test_what_follows_a_wrong_layer_is_not_told_as_wrong(model: Any, tmp_path: Path) -> None:
    path = write_tflite(model, tmp_path / "every.tflite", is_int8=True)
    opened, right = open_model(str(path)), Interpreted(path)
    network = opened.network
    inputs, tensors = right_tensors(network, right)
    layers = [each for each in network.operators if each.kind is not OperatorKind.RESHAPE]
    takers = [each for each in layers if each.kind is OperatorKind.CONCATENATE]
    (first,) = [each for each in layers if each.output.name in {tensor.name for tensor in takers[0].inputs[1:2]}]
    # The last one has numbers of its own that are right.
    for each in (first, *layers[layers.index(takers[0]) : -1]):
        tensors[each.output.name].flat[0] += 1
    outputs = [tensors[each.name].copy() for each in network.outputs]
    found = opened.check(inputs, tensors, outputs)
    checked = dict(zip((each.output.name for each in layers), found.layers, strict=True))
    wrong = [name for name, each in checked.items() if each and each.is_wrong]
    assert wrong == [first.output.name]
    following = {name for name, each in checked.items() if each and each.follows_from == "+".join(first.places)}
    assert following == {each.output.name for each in layers[layers.index(takers[0]) : -1]}
    assert [each.is_right or each.follows_from == "+".join(first.places) for each in found.outputs] == [True, True]


def test_what_an_activation_is_fused_into_is_checked_with_it(keras: Any, tmp_path: Path) -> None:
    """Before it there are numbers below 0, which no tensor of the file has."""
    layers = keras.layers
    source = keras.Input(batch_shape=(1, 8, 6, 4))
    pooled = layers.ReLU()(layers.AveragePooling2D(2)(source))
    value = layers.Conv2D(3, 1)(layers.ReLU()(layers.MaxPooling2D(1)(pooled - 0.2)))
    path = write_tflite(randomized(keras.Model(source, value)), tmp_path / "fused.tflite", is_int8=False)
    opened, right = open_model(str(path)), Interpreted(path)
    network = opened.network
    inputs, made = right_tensors(network, right)
    names = [each.output.name for each in network.operators]
    apart = [place for place, name in enumerate(names) if name.endswith("_before")]
    assert len(apart) == 2
    for place in apart:
        made[names[place]] -= 1.0
    outputs = [made[each.name].copy() for each in network.outputs]
    checked = opened.check(inputs, made, outputs)
    assert [place for place, each in enumerate(checked.layers) if each is None] == apart
    assert all(each is None or each.is_right for each in (*checked.layers, *checked.outputs))
    first, *following = network.operators[apart[0] + 1 :]
    for each in (first, *following):
        made[each.output.name] += 1.0
    # Across the second one, too, what is off follows from the first that is wrong.
    found = opened.check(inputs, made, outputs).layers
    assert [bool(each and each.is_wrong) for each in found].count(True) == 1
    assert {each.follows_from for each in found if each} == {None, "+".join(first.places)}
