"""A quantised model's operators are tuned in one run, which starts from the schedules that their generators have; and
the model is built with what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sdk
from halide_autotune.autotune_loop.specification.objective import LOOKS
from halide_autotune.sdk.settings import Settings
from tests.end_to_end.run_files import rows
from tests.tflite_models import randomized, write_tflite

pytestmark = pytest.mark.slow


def test_the_operators_of_a_quantised_model_are_tuned_in_one_run(
    tensorflow_ready: None, settings: Settings, tmp_path: Path
) -> None:
    import keras

    layers: Any = keras.layers
    source = keras.Input(batch_shape=(1, 12, 12, 8))
    value = source
    for activation in ("relu", "relu6"):
        value = layers.Conv2D(8, 3, padding="same", activation=activation)(value)
    model = randomized(keras.Model(source, layers.Dense(4)(layers.GlobalAveragePooling2D()(value))))
    path = write_tflite(model, tmp_path / "small.tflite", is_int8=True)
    features = ["strict_float"]
    options = sdk.RunOptions.of(
        target="host",
        target_features=features,
        rounds=1,
        batch_size=4,
        # It takes over two minutes on a busy machine.
        full_search_limit_s=10.0,
        play_off_turns=LOOKS[0],
        parallelism=1,
        no_history=True,
    )
    found = sdk.tune_network(str(path), options=options, run_folder=tmp_path / "run", settings=settings)
    assert not found.rest and all(each.tuned_ms for each in found.operators)
    counts = {each.task.title: each.task.count for each in found.operators}
    assert counts["int8 convolution 3x3 of 12x12x8 to 12x12x8"] == 2, "their limits and scales come with each call"
    assert rows(found.result.run_folder, "SELECT count(*) FROM candidates WHERE task = 0")[0][0] > 1
    check_that_it_can_be_built(path, found.result.run_folder, settings, tmp_path)


def check_that_it_can_be_built(path: Path, run: Path, settings: Settings, folder: Path) -> None:
    options = sdk.RunOptions.of(parallelism=1)
    benched = sdk.bench_network(str(path), run=run, options=options, turns=1, settings=settings)
    assert benched.wrong == () and benched.not_timed == {} and benched.not_tuned == ()
    assert {*benched.times_ms} == {"default", "tuned", "LiteRT"} and min(benched.times_ms.values()) > 0
    assert all(check.tolerance == 0 for layer in benched.layers for check in layer.checks.values())
    assert benched.to_dict()["reference"] == "TensorFlow Lite's reference kernels"
    made = sdk.build_network(str(path), folder / "built", run=run, settings=settings)
    assert made.library.name == "libsmall.a" and "strict_float" in made.header.read_text(), "as the run was tuned"
