"""A whole network, built by the real compilers and run: every layer computes what Keras does."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.network.keras_model import KerasModel
from halide_autotune.autotune_loop.network.library.kernels import TaskRecipe, build_kernels
from halide_autotune.autotune_loop.network.operator_generators import OPERATORS_FILE, operator_generators
from halide_autotune.autotune_loop.network.read_keras import read_keras
from halide_autotune.autotune_loop.network.tasks import tasks_of
from halide_autotune.sdk.project.preparation import open_named_generator, open_workbench
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.artifacts import KernelRecipe
from halide_autotune.targets.build.executable import BuildTools
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain
from tests.network_libraries import built, check_built

pytestmark = pytest.mark.toolchain


def every_operator(keras: Any) -> Any:
    """A network with all kinds of operators, two inputs, and outputs that are an input or of another one's memory."""
    layers = keras.layers
    picture, further = keras.Input((9, 7, 3), name="picture"), keras.Input((4,), name="further")
    value = layers.Rescaling(0.5, offset=0.25)(picture)
    value = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False, name='conv "with" \\ ä*')(value)
    value = layers.ReLU(6.0)(layers.BatchNormalization()(value))
    branch = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2, activation="silu")(value)
    wide = layers.Concatenate()([branch, layers.Conv2D(4, 1, groups=4, activation="hard_sigmoid")(value), value])
    padded = layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(((1, 2), (0, 1)))(wide))
    pixels = layers.Conv2D(4, 1, activation="softmax")(padded)
    gate = layers.Dense(28, activation="sigmoid")(
        layers.Concatenate()([layers.GlobalAveragePooling2D()(padded), further])
    )
    gated = layers.Multiply()([layers.Reshape((1, 1, 28))(gate), padded])
    summed = layers.LeakyReLU(0.1)(layers.Add()([gated, layers.Conv2D(28, 1)(pixels)]))
    less = layers.Activation("gelu")(layers.Subtract()([layers.GlobalMaxPooling2D(keepdims=True)(summed), summed]))
    summed = layers.ELU()(layers.Conv2D(28, 1, activation="hard_swish")((less + 3.0) / 6.0))
    summed = layers.AveragePooling2D(2, padding="same")(layers.BatchNormalization()(summed))
    flat = layers.Flatten()(layers.Activation("hard_sigmoid")(layers.Rescaling(0.05, offset=-1.0)(summed)))
    head = layers.Softmax()(layers.Activation("tanh")(layers.Dense(5)(flat)))
    hidden, states = layers.LSTMCell(4)(head, [further, layers.Dense(4)(flat)])
    hidden, states = layers.LSTMCell(4, use_bias=False)(hidden, states)
    outputs = [head, gate, layers.Reshape((4, 1))(further), layers.Reshape((4, 7))(gate), hidden, *states]
    return keras.Model([picture, further], outputs, name="2 of-every.kind")


@pytest.fixture(scope="module")
def model(keras: Any) -> Any:
    made, source = every_operator(keras), np.random.default_rng(3)
    made.set_weights([np.abs(source.normal(0.4, 0.2, each.shape)) + 0.05 for each in made.get_weights()])
    return made


def opened(model: Any) -> KerasModel:
    return KerasModel(model, read_keras(model))


@pytest.mark.parametrize("target", ["x86-64", "arm64"])
def test_every_layer_computes_what_keras_does(model: Any, target: str, settings: Settings, tmp_path: Path) -> None:
    made = built(opened(model), target, settings, tmp_path / "made")
    names = {path.name for path in (tmp_path / "made").iterdir()}
    assert names == {"libnetwork_2_of_every_kind.a", "network_2_of_every_kind.h", "network_2_of_every_kind_bench"}
    check_built(opened(model), made, target, settings, tmp_path)


def test_a_c_program_calls_it_and_hears_what_is_wrong(model: Any, settings: Settings, tmp_path: Path) -> None:
    made = built(opened(model), "x86-64", settings, tmp_path)
    source = tmp_path / "caller.c"
    source.write_text(f"""#include <stdio.h>
#include <stdlib.h>
#include "{made.name}.h"
#define NAME(part) {made.name}_##part
int main(void) {{
    const float *inputs[NAME(INPUT_COUNT)];
    float *outputs[NAME(OUTPUT_COUNT)];
    for (int i = 0; i < NAME(INPUT_COUNT); i++) inputs[i] = calloc(NAME(input_sizes)[i], sizeof(float));
    for (int i = 0; i < NAME(OUTPUT_COUNT); i++) outputs[i] = calloc(NAME(output_sizes)[i], sizeof(float));
    void *workspace = aligned_alloc(NAME(WORKSPACE_ALIGNMENT), NAME(WORKSPACE_BYTES));
    if (NAME(run)(inputs, outputs, NULL) == 0) return 1;
    if (NAME(run_layer)(NAME(LAYER_COUNT), inputs, outputs, workspace) == 0) return 1;
    if (NAME(run)(inputs, outputs, workspace) != 0) return 2;
    float sum = 0;
    for (int i = 0; i < 5; i++) sum += outputs[0][i];
    printf("%.3f\\n", sum);
    return 0;
}}
""")
    program = tmp_path / "caller"
    link = ["gcc", "-Wall", "-Werror", str(source), str(made.library), "-o", str(program), "-lpthread", "-ldl", "-lm"]
    subprocess.run(link, check=True)
    assert subprocess.run([program], check=True, capture_output=True, text=True).stdout == "1.000\n"


def test_the_benchmark_says_what_is_wrong(model: Any, settings: Settings, tmp_path: Path) -> None:
    made = built(opened(model), "x86-64", settings, tmp_path)

    def said(*words: str) -> str:
        outcome = subprocess.run([made.benchmark, *words], capture_output=True, text=True, cwd=tmp_path)
        assert outcome.returncode == 1
        return outcome.stderr

    (tmp_path / "short.raw").write_bytes(bytes(8))
    (tmp_path / "long.raw").write_bytes(bytes(4 * (9 * 7 * 3 + 4) + 1))
    assert said("--input", "short.raw") == "There is too little input in short.raw.\n"
    assert said("--input", "long.raw") == "There is too much input in long.raw.\n"
    assert said("--input", "missing.raw") == "A file cannot be opened: missing.raw.\n"
    assert said("--repetitions", "two") == "No number for --repetitions.\n"
    assert said("--threads") == "There is no value for --threads.\n"


def test_a_schedule_that_does_not_compile_names_its_layer(model: Any, settings: Settings) -> None:
    network = read_keras(model)
    (dense,) = [each for each in operator_generators(tasks_of(network.operators))[0] if each.name == "dense"]
    bench, profile = open_workbench(settings), load_profile("x86-64", settings.profile_folder)
    tools = BuildTools(bench.halide, bench.cache, open_toolchain(profile, settings.cache_folder, None))
    own = ScheduleChoice("own", None, searches=False)
    with contextlib.ExitStack() as exits:
        _, program = exits.enter_context(open_named_generator(f"{OPERATORS_FILE}:dense", (), bench, settings))
        recipe = KernelRecipe(program, "dense", "kernel", {"no_such": "1"}, profile, own)
        with pytest.raises(GeneratorError, match=r"Layer dense\w* \(dense of 32 to 28, sigmoid\) cannot be built"):
            build_kernels([TaskRecipe(dense.tasks[0], recipe)], tools, 1, lambda text: None)
