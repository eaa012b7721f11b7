"""Networks built by the real compilers, and computed where they run."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.network.int8.int8_weights import packed_layout
from halide_autotune.autotune_loop.network.library.build_library import NetworkLibrary, build_library
from halide_autotune.autotune_loop.network.library.c_sources import c_name, kernel_name
from halide_autotune.autotune_loop.network.library.kernels import TaskRecipe, build_kernels
from halide_autotune.autotune_loop.network.library.steps import network_steps
from halide_autotune.autotune_loop.network.loaded_model import LoadedModel
from halide_autotune.autotune_loop.network.operator_generators import operator_generators
from halide_autotune.autotune_loop.network.operators import ElementType, Tensor
from halide_autotune.autotune_loop.network.packed_floats import with_blocks
from halide_autotune.autotune_loop.network.tasks import tasks_of
from halide_autotune.devices.local.open_device import emulator_command
from halide_autotune.sdk.project.preparation import open_named_generator, open_workbench
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.artifacts import KernelRecipe
from halide_autotune.targets.build.executable import BuildTools
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain

Array = Any


def built(model: LoadedModel, target: str, settings: Settings, output: Path) -> NetworkLibrary:
    """With the generators' own schedules, which compile at once."""
    network = with_blocks(model.network)
    assert not network.unsupported
    bench, profile = open_workbench(settings), load_profile(target, settings.profile_folder)
    tools = BuildTools(bench.halide, bench.cache, open_toolchain(profile, settings.cache_folder, None))
    layout = packed_layout(profile.halide_target)
    generators, _ = operator_generators(tasks_of(network.operators), layout)
    own = ScheduleChoice("own", None, searches=False)
    recipes: list[TaskRecipe] = []
    with contextlib.ExitStack() as exits:
        programs = {}
        for each in generators:
            if each.file not in programs:
                opened = open_named_generator(f"{each.file}:{each.name}", (), bench, settings)
                _, programs[each.file] = exits.enter_context(opened)
            for task, texts in zip(each.tasks, each.parameters, strict=True):
                symbol, parameters = kernel_name(c_name(network.name), len(recipes)), dict(t.split("=") for t in texts)
                recipe = KernelRecipe(programs[each.file], each.name, symbol, parameters, profile, own)
                recipes.append(TaskRecipe(task, recipe))
        kernels = build_kernels(recipes, tools, 2, lambda text: None)
    steps = network_steps(network, [each.task for each in recipes], model.weights(layout))
    return build_library(steps, kernels, profile.halide_target, tools, output)


def check_built(model: LoadedModel, made: NetworkLibrary, target: str, settings: Settings, folder: Path) -> None:
    """Run a network's benchmark; every layer and output is as the model computes it, and all are timed."""
    inputs, steps = model.random_inputs(), made.steps.steps
    (folder / "in.raw").write_bytes(b"".join(each.tobytes() for each in inputs))
    launcher = () if target == "x86-64" else emulator_command(load_profile(target, settings.profile_folder))
    files = ["--input", "in.raw", "--output", "out.raw", "--layer-outputs", "layers.raw", "--report", "report.json"]
    command = [*launcher, str(made.benchmark), "--repetitions", "2", *files]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    layers = _tensors(folder / "layers.raw", [step.output for step in steps])
    by_name = {step.output.name: part for step, part in zip(steps, layers, strict=True)}
    checked = model.check(inputs, by_name, _tensors(folder / "out.raw", model.network.outputs))
    assert [each for each in (*checked.layers, *checked.outputs) if each and not each.is_right] == []
    report = json.loads((folder / "report.json").read_text())
    assert [layer["name"] for layer in report["layers"]] == [step.name for step in steps]
    assert report["median_ms"] > 0


def _tensors(path: Path, tensors: Sequence[Tensor]) -> list[Array]:
    content, found = path.read_bytes(), []
    for each in tensors:
        type_ = np.dtype(np.int8 if each.element is ElementType.INT8 else np.float32)
        size = int(np.prod(each.shape))
        found.append(np.frombuffer(content, type_, size))
        content = content[size * type_.itemsize :]
    assert content == b""
    return found
