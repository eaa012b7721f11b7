"""What is tuned of a network: equal operators once, with how often they are needed and what they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.network.memory_plan import plan_memory
from halide_autotune.autotune_loop.network.models import read_model
from halide_autotune.autotune_loop.network.read_keras import read_keras
from halide_autotune.autotune_loop.network.tasks import tasks_of
from halide_autotune.targets.errors import NetworkError

pytestmark = [pytest.mark.toolchain, pytest.mark.usefixtures("tensorflow_ready")]


def test_equal_operators_are_one_task_and_those_with_the_most_work_come_first(keras: Any) -> None:
    layers = keras.layers
    source = keras.Input((16, 16, 8))
    value = layers.Dense(4, name="small")(source)
    for number in range(3):
        value = layers.Conv2D(4, 3, padding="same", activation="relu", name=f"c{number}")(value)
    tasks = tasks_of(read_keras(keras.Model(source, layers.Flatten()(value))).operators)
    assert [(task.count, task.operations) for task in tasks] == [(3, 2 * 16 * 16 * 4 * 9 * 4), (1, 2 * 16 * 16 * 4 * 8)]
    assert tasks[0].title == "convolution 3x3 of 16x16x4 to 16x16x4, relu"
    assert tasks[0].places == (("c0",), ("c1",), ("c2",)), "the reshaping is nobody's work"


def test_what_is_added_to_a_convolution_is_told(keras: Any) -> None:
    layers = keras.layers
    source = keras.Input((4, 4, 2))
    model = keras.Model(source, layers.Add()([source, layers.Conv2D(2, 3, padding="same")(source)]))
    (task,) = tasks_of(read_keras(model).operators)
    assert task.title == "convolution 3x3 of 4x4x2 to 4x4x2, plus 4x4x2"


def test_resnet18s_convolutions_are_a_ready_set() -> None:
    network = read_model("resnet18-convolutions")
    assert [operator.places[0] for operator in network.operators] == [f"C{number}" for number in range(1, 13)]
    tasks = tasks_of(network.operators)
    assert len(tasks) == 12 and not network.unsupported
    first = next(task for task in tasks if task.places == (("C1",),))
    assert first.title == "convolution 7x7 /2 of 224x224x3 to 112x112x64, relu"
    assert first.operations == 2 * 112 * 112 * 64 * 49 * 3
    settings = dict(first.settings)
    assert (settings["pad_rows_before"], settings["pad_rows_after"]) == (3, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "operators", "million_operations"),
    [
        ("MobileNet", 30, 1137),
        ("MobileNetV2", 55, 601),
        ("ResNet50", 58, 7717),
        ("MobileNetV3Small", 84, 113),
        ("MobileNetV3Large", 91, 434),
    ],
)
def test_applications_of_keras_have_the_work_that_is_known_of_them(
    keras: Any, name: str, operators: int, million_operations: int
) -> None:
    network = read_model(name)
    tasks = tasks_of(network.operators)
    assert not network.unsupported and sum(task.count for task in tasks) == operators
    assert sum(task.count * task.operations for task in tasks) // 1_000_000 == million_operations
    memory = plan_memory(network)
    assert memory.workspace_bytes <= 1.2 * memory.least_bytes


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("missing.keras", "There is no model missing.keras. Check the path."),
        ("damaged.keras", "damaged.keras cannot be read as a Keras model"),
        ("MobilNetV2", "Keras has no application 'MobilNetV2'; the nearest is 'MobileNetV2'."),
        ("model.onnx", "model.onnx is no model that can be read. Give a .keras or .tflite file"),
        ("../escape", "is no model that can be read"),
    ],
)
def test_what_is_no_model_is_one_sentence(
    keras: Any, model: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged.keras").write_text("no model")
    with pytest.raises(NetworkError) as raised:
        read_model(model)
    assert said in str(raised.value) and "\n" not in str(raised.value)


# Keras saves arrays in a way that NumPy tells will end.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_saved_model_is_read(keras: Any, tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((4, 4, 3)), keras.layers.Conv2D(2, 3, name="only")])
    path = tmp_path / "saved.keras"
    model.save(path)
    (operator,) = read_model(str(path)).operators
    assert operator.places == ("only",)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_code_in_a_model_is_not_run(keras: Any, tmp_path: Path) -> None:
    path = tmp_path / "lambda.keras"
    marker = tmp_path / "was-run"
    name = str(marker)
    layer = keras.layers.Lambda(lambda value: value * Path(name).write_text("x"), output_shape=(4,))
    keras.Sequential([keras.Input((4,)), layer]).save(path)
    marker.unlink(missing_ok=True)
    with pytest.raises(NetworkError, match="cannot be read as a Keras model"):
        read_model(str(path))
    assert not marker.exists()
