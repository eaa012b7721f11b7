"""A Keras model's operators are tuned in one run, and what the model has no operator for ends it at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sdk
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import NetworkError
from tests.end_to_end.run_files import rows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def keras(tensorflow_ready: None) -> Any:
    import keras

    return keras


def test_the_operators_of_a_model_are_tuned_in_one_run(keras: Any, settings: Settings, tmp_path: Path) -> None:
    layers = keras.layers
    source = keras.Input((12, 12, 8))
    value = source
    for number in range(2):
        inner = layers.Conv2D(8, 3, padding="same", name=f"conv{number}")(value)
        value = layers.ReLU()(layers.Add()([value, layers.BatchNormalization()(inner)]))
    model = keras.Model(source, layers.Dense(4, activation="tanh", name="head")(layers.Flatten()(value)))
    path = tmp_path / "small.keras"
    model.save(path)
    options = sdk.RunOptions.of(target="host", rounds=1, batch_size=4, parallelism=1, no_history=True)
    found = sdk.tune_network(str(path), options=options, run_folder=tmp_path / "run", settings=settings)
    by_kind = {each.task.kind.value: each for each in found.operators}
    assert [*by_kind] == ["convolution", "dense"]
    assert by_kind["convolution"].task.count == 2 and len(by_kind["convolution"].task.input_shapes) == 2
    assert all(each.tuned_ms for each in found.operators) and not found.rest
    assert found.tuned_ms is not None and found.default_ms is not None
    convolution = by_kind["convolution"].tuned_ms
    assert convolution is not None and found.tuned_ms > 2 * convolution
    timed = rows(found.result.run_folder, "SELECT count(DISTINCT task) FROM candidates")
    assert timed == [(2,)]
    text = (found.result.run_folder / "run.toml").read_text()
    assert "calls = 2.0" in text and "calls = 1.0" in text
    told = found.to_dict()
    assert told["model"] == model.name and isinstance(told["operators"], list) and len(told["operators"]) == 2


def test_a_layer_without_an_operator_ends_it_before_anything_is_built(
    keras: Any, settings: Settings, tmp_path: Path
) -> None:
    source = keras.Input((12, 12, 8))
    path = tmp_path / "strange.keras"
    keras.Model(source, keras.layers.Conv2DTranspose(4, 3, name="up")(source)).save(path)
    with pytest.raises(NetworkError, match=r"\(up: there is no operator for Conv2DTranspose\)"):
        sdk.tune_network(str(path), run_folder=tmp_path / "run", settings=settings)
    assert not (tmp_path / "run").exists()
