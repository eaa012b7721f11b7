"""A layer that computes something else than Keras is found, and by how much it is off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.network.layer_check import CheckedNetwork, check_network, compare, random_inputs
from halide_autotune.autotune_loop.network.models import load_model
from halide_autotune.autotune_loop.network.read_keras import read_keras
from halide_autotune.targets.errors import NetworkError

pytestmark = pytest.mark.toolchain


@pytest.mark.parametrize(
    ("found", "right", "error"),
    [
        ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], 0.0),
        ([0.0, 1.0, 2.5], [0.0, 1.0, 2.0], 0.25),
        ([100.0, 100.5], [100.0, 100.0], 0.5),
        ([7.0, 7.0], [7.0, 7.0], 0.0),
        ([np.nan, 1.0], [0.0, 1.0], np.inf),
        ([np.inf, 1.0], [np.inf, 1.0], 0.0),
        ([np.nan], [np.nan], 0.0),
        ([1.0, 0.0], [0.0, 0.0], np.inf),
    ],
)
def test_errors_are_of_the_range(found: list[float], right: list[float], error: float) -> None:
    checked = compare("layer", np.array(found, np.float32), np.array(right, np.float32))
    wanted = 1 / np.finfo("f").tiny if error == np.inf and np.isfinite(found).all() else error
    assert checked.error == pytest.approx(wanted) and checked.is_right == (error == 0.0)


def test_the_layer_that_is_wrong_is_named_and_none_after_it(keras: Any, compute: Callable[..., Any]) -> None:
    layers = keras.layers
    source = keras.Input((6, 6, 3))
    value = layers.ReLU(name="active")(layers.Conv2D(4, 3, name="first")(source))
    value = layers.Dense(3, activation="softmax", name="head")(layers.Flatten()(value))
    model = keras.Model(source, [value, layers.MaxPooling2D(2, name="aside")(source)])
    network, inputs = read_keras(model), random_inputs(model)
    made = {name: tensor[0] for name, tensor in compute(model, network, inputs[0]).items()}
    ends = [tensor.name for tensor in network.outputs]

    def checked() -> CheckedNetwork:
        return check_network(model, network, inputs, made, [made[name] for name in ends])

    found = checked()
    assert {None if each is None else each.name for each in found.layers} == {"first+active", None, "head", "aside"}
    assert all(each is None or each.is_right for each in (*found.layers, *found.outputs))
    (first,) = [each.output.name for each in network.operators if each.places == ("first", "active")]
    made[first][0] += 0.25
    # What follows is then of the wrong numbers, as a device computes it.
    made[ends[0]] = np.asarray(model.get_layer("head")(made[first].reshape(1, -1)))[0]
    made[ends[1]] = made[ends[1]] + 1.0
    found = checked()
    assert [each.name for each in found.layers if each and not each.is_right] == ["first+active", "aside"]
    assert [(each.name, each.is_right, each.follows_from) for each in found.outputs] == [
        ("output 0", False, "first+active"),
        ("output 1", False, "aside"),
    ]
    # Where all layers are right, it is the output's own fault.
    made = {name: tensor[0] for name, tensor in compute(model, network, inputs[0]).items()}
    wrong = check_network(model, network, inputs, made, [made[ends[0]], made[ends[1]] + 1.0])
    assert [each.is_wrong for each in wrong.outputs] == [False, True]


def test_an_application_has_the_same_weights_every_time(keras: Any) -> None:
    first, second = load_model("MobileNet"), load_model("MobileNet")
    pairs = list(zip(first.get_weights(), second.get_weights(), strict=True))
    assert all(np.array_equal(*pair) for pair in pairs)
    (numbers,) = random_inputs(first)
    made = np.asarray(first(numbers, training=False))
    assert np.isfinite(made).all() and np.ptp(made) > 0
    with pytest.raises(NetworkError, match="resnet18-convolutions is a list of operators"):
        load_model("resnet18-convolutions")
