"""A Keras model's operators are tuned in one run, and what the model has no operator for ends it at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sdk
from halide_autotune.autotune_loop.specification.objective import LOOKS
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import NetworkError, RunFolderError
from tests.end_to_end.run_files import rows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def keras(tensorflow_ready: None) -> Any:
    import keras

    return keras


def test_the_operators_of_a_model_are_tuned_in_one_run(keras: Any, settings: Settings, tmp_path: Path) -> None:
    layers = keras.layers
    source = keras.Input((12, 12, 16))
    value = source
    for number in range(2):
        inner = layers.Conv2D(16, 3, padding="same", name=f"conv{number}")(value)
        value = layers.ReLU()(layers.Add()([value, layers.BatchNormalization()(inner)]))
    model = keras.Model(source, layers.Dense(4, activation="tanh", name="head")(layers.Flatten()(value)))
    path = tmp_path / "small.keras"
    model.save(path)
    options = sdk.RunOptions.of(target="host", rounds=1, batch_size=4, parallelism=1, no_history=True)
    options = options.with_values({"full_search_limit_s": 10.0, "play_off_turns": LOOKS[0]})
    found = sdk.tune_network(
        str(path), options=options, run_folder=tmp_path / "run", settings=settings, tries_layouts=True
    )
    by_kind = {each.task.kind.value: each for each in found.operators}
    assert [*by_kind] == ["convolution", "dense"]
    assert dict(by_kind["convolution"].task.settings)["block"] in (8, 16)
    assert by_kind["convolution"].task.count == 2 and len(by_kind["convolution"].task.input_shapes) == 2
    assert all(each.tuned_ms for each in found.operators) and not found.rest
    assert found.tuned_ms is not None and found.untuned_ms is not None
    convolution = by_kind["convolution"].tuned_ms
    assert convolution is not None and found.tuned_ms > 2 * convolution
    timed = rows(found.result.run_folder, "SELECT count(DISTINCT task) FROM candidates")
    assert timed == [(2,)]
    text = (found.result.run_folder / "run.toml").read_text()
    assert "calls = 2.0" in text and "calls = 1.0" in text
    told = found.to_dict()
    assert told["model"] == model.name and isinstance(told["operators"], list) and len(told["operators"]) == 2
    check_that_it_can_be_built(path, found.result.run_folder, settings, tmp_path)


def check_that_it_can_be_built(path: Path, run: Path, settings: Settings, folder: Path) -> None:
    options = sdk.RunOptions.of(parallelism=1)
    benched = sdk.bench_network(str(path), run=run, options=options, turns=1, settings=settings)
    assert benched.wrong == () and benched.not_timed == {}
    assert {*benched.times_ms} == {"default", "tuned", "TensorFlow", "LiteRT"} and min(benched.times_ms.values()) > 0
    assert benched.ranges_ms == {name: (time_ms, time_ms) for name, time_ms in benched.times_ms.items()}, "of one turn"
    assert [layer.name.split("+")[0] for layer in benched.layers] == ["conv0", "conv1", "head"]
    assert all({*layer.times_ms} == {*layer.checks} == {"default", "tuned"} for layer in benched.layers)
    with pytest.raises(RunFolderError, match=r"was tuned for host, not for arm64\. Build for --target host"):
        sdk.build_network(str(path), folder / "built", target="arm64", run=run, settings=settings)
    assert not (folder / "built").exists()
    (run / "samples" / "best.dense.schedule.h").unlink()
    made = sdk.build_network(str(path), folder / "built", run=run, settings=settings)
    assert made.library.name == "libsmall.a" and made.header.is_file()
    assert made.not_tuned == ("layer head (dense of 2304 to 4, tanh)",)


def test_a_network_for_an_emulated_target_is_checked_and_not_timed(
    keras: Any, settings: Settings, tmp_path: Path
) -> None:
    source = keras.Input((6, 6, 3))
    path = tmp_path / "few.keras"
    keras.Model(source, keras.layers.GlobalMaxPooling2D()(keras.layers.Conv2D(4, 3, name="only")(source))).save(path)
    found = sdk.bench_network(str(path), target="arm64", device="qemu", settings=settings)
    assert found.wrong == () and found.times_ms == {} and found.device.is_emulated
    assert [{*layer.checks} for layer in found.layers] == [{"default"}, {"default"}]
    with pytest.raises(NetworkError, match=r"A network is built for processors, and cuda-sm86 is for a card"):
        sdk.build_network(str(path), tmp_path / "built", target="cuda-sm86", settings=settings)


def test_a_layer_without_an_operator_ends_it_before_anything_is_built(
    keras: Any, settings: Settings, tmp_path: Path
) -> None:
    source = keras.Input((12, 12, 8))
    path = tmp_path / "strange.keras"
    keras.Model(source, keras.layers.Conv2DTranspose(4, 3, name="up")(source)).save(path)
    with pytest.raises(NetworkError, match=r"\(up: there is no operator for Conv2DTranspose\)"):
        sdk.tune_network(str(path), run_folder=tmp_path / "run", settings=settings)
    assert not (tmp_path / "run").exists()
