"""`sdk.build_network`: a neural network as a static library with one C entry."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from halide_autotune.autotune_loop.cost_model.process.model_process import tensorflow_environment
from halide_autotune.autotune_loop.network.int8.int8_weights import packed_layout
from halide_autotune.autotune_loop.network.library.build_library import NetworkLibrary, build_library
from halide_autotune.autotune_loop.network.library.c_sources import c_name, kernel_name
from halide_autotune.autotune_loop.network.library.kernels import TaskRecipe, build_kernels
from halide_autotune.autotune_loop.network.library.steps import Steps, network_steps
from halide_autotune.autotune_loop.network.loaded_model import LoadedModel
from halide_autotune.autotune_loop.network.models import open_model
from halide_autotune.autotune_loop.network.operator_generators import operator_generators
from halide_autotune.autotune_loop.network.packed_floats import with_blocks
from halide_autotune.autotune_loop.network.tasks import NetworkTask, task_key, tasks_of
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.api.network.run_schedules import RunSchedules, run_schedules
from halide_autotune.sdk.api.network.tune import check_is_supported
from halide_autotune.sdk.options.generator_spec import asked_options
from halide_autotune.sdk.output import silent_stderr
from halide_autotune.sdk.project.preparation import Workbench, named_profile, open_workbench
from halide_autotune.sdk.select.hexagon_choice import named_hexagon_sdk
from halide_autotune.sdk.settings import Settings, export_variables, read_settings
from halide_autotune.targets.build.artifacts import KernelRecipe
from halide_autotune.targets.build.executable import BuildTools
from halide_autotune.targets.errors import NetworkError, ToolchainError, os_error_as
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.output_folder import output_folder
from halide_autotune.targets.profile.profile import OWN_SCHEDULE, TargetProfile
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain

Progress = Callable[[str], None]


def build_network(
    model: str,
    output: Path,
    *,
    target: str | None = None,
    run: Path | None = None,
    options: RunOptions | None = None,
    progress: Progress = lambda text: None,
    settings: Settings | None = None,
) -> NetworkLibrary:
    """Build a network for a target: a static library with its weights, a C header, and a benchmark that runs there.

    Args:
        model: the path of a `.keras` or `.tflite` file, or the name of a class of `keras.applications`, such as
            MobileNetV2, which has the same random weights every time.
        output: the folder for the files.
        target: name or path of a target profile; None takes that of `options`, else the run's, else this machine's.
        run: the folder that `tune_network` has left, with a schedule for each operator; without it operators have
            those of their generators.
        options: those of the devices, of which the features of the target count (without any the run's) and the
            Hexagon SDK.
        progress: called with a phrase at every step that may take long.

    Raises:
        NetworkError: the model cannot be read, or has layers that there is no operator for.
        RunFolderError: the run is of another network or target, or of other features of it.
        SdkError: a subclass, for everything else that a user can fix.
    """
    settings = settings or read_settings()
    asked = asked_options(options, target)
    schedules = None if run is None else run_schedules(run)
    devices = asked.devices if schedules is None else schedules.filled_in(asked.devices)
    profile = named_profile(devices, settings)
    check_target(profile, devices.target_features, schedules)
    sdk = named_hexagon_sdk(profile, devices.hexagon_sdk_root, settings)
    toolchain = open_toolchain(profile, settings.cache_folder, settings.ndk_root, sdk)
    toolchain.version()
    target_of = NetworkTarget(profile, toolchain, open_workbench(settings, progress))
    with contextlib.ExitStack() as exits:
        # A model takes seconds to read, and minutes to build: what is known to fail is told before.
        with os_error_as(ToolchainError, f"{output} cannot be written"):
            exits.enter_context(output_folder(output))
        opened = open_network(model, profile.halide_target, schedules)
        return build_opened(opened, target_of, schedules, output, progress, settings)


def check_target(profile: TargetProfile, features: Sequence[str], schedules: RunSchedules | None) -> None:
    """Check that a network can be built for a target, with these schedules.

    Args:
        features: those of the profile that were asked for, or are the run's.

    Raises:
        NetworkError: it is a card.
        RunFolderError: the schedules are for another target, or for other features of it.
    """
    if profile.machine.gpu is not None:
        raise NetworkError(
            f"A network is built for processors, and {profile.name} is for a card.",
            next_step="Choose the profile of its processor, such as --target x86-64.",
        )
    if schedules is not None:
        schedules.check_target(profile.name, features)


@dataclass(frozen=True)
class NetworkTarget:
    """What a network is built for, and with what."""

    profile: TargetProfile
    toolchain: CToolchain
    workbench: Workbench


@dataclass(frozen=True)
class GeneratedOperator:
    """A task, and the generator that computes it with its parameters.

    Attributes:
        file: where the generator is registered.
    """

    task: NetworkTask
    file: Path
    generator_name: str
    parameters: Mapping[str, str]

    @property
    def words(self) -> str:
        """'layer conv1 (convolution 3x3 of …)', for people."""
        return f"layer {self.task.places[0][0]} ({self.task.title})"


@dataclass(frozen=True)
class OpenedNetwork:
    """A model that can be built.

    Attributes:
        operators: what has a kernel.
    """

    model: LoadedModel
    operators: tuple[GeneratedOperator, ...]
    steps: Steps


def open_network(model: str, halide_target: str, schedules: RunSchedules | None) -> OpenedNetwork:
    """Read a model with its weights, which lie as the target and the run's schedules take them.

    Raises:
        NetworkError: it cannot be read, or has layers that there is no operator for.
    """
    export_variables(tensorflow_environment({}, len(os.sched_getaffinity(0))))
    with silent_stderr():
        opened = open_model(model)
    network, layout = with_blocks(opened.network), packed_layout(halide_target)
    check_is_supported(network)
    generators, _ = operator_generators(tasks_of(network.operators), layout)
    if schedules is not None:
        blocks = schedules.blocks(generators)
        network = with_blocks(network, lambda operator: blocks.get(task_key(operator)))
        generators, _ = operator_generators(tasks_of(network.operators), layout)
    operators = tuple(
        GeneratedOperator(task, each.file, each.name, dict(text.split("=", 1) for text in texts))
        for each in generators
        for task, texts in zip(each.tasks, each.parameters, strict=True)
    )
    steps = network_steps(network, [each.task for each in operators], opened.weights(layout))
    return OpenedNetwork(opened, operators, steps)


def build_opened(
    opened: OpenedNetwork,
    target: NetworkTarget,
    schedules: RunSchedules | None,
    output: Path,
    progress: Progress,
    settings: Settings,
) -> NetworkLibrary:
    """Build a network that is open, for a target that is checked; as `build_network`."""
    profile, workbench = target.profile, target.workbench
    tools = BuildTools(workbench.halide, workbench.cache, target.toolchain)
    name = c_name(opened.steps.network.name)
    with contextlib.ExitStack() as exits:
        programs = {}
        for file in {each.file for each in opened.operators}:
            opening = parse_generator(str(file)), workbench.halide, workbench.compiler, settings.environment
            programs[file] = exits.enter_context(contextlib.closing(open_generator(*opening)))
        tasks, not_tuned = [], []
        for number, each in enumerate(opened.operators):
            tuned = None
            if schedules is not None:
                called = each.generator_name, each.parameters, each.words
                tuned = schedules.choice(*called, workbench.apply_header)
                not_tuned += [] if tuned else [each.words]
            of_kernel = each.generator_name, kernel_name(name, number), each.parameters, profile
            schedule = tuned or ScheduleChoice(OWN_SCHEDULE, None, searches=False)
            tasks.append(TaskRecipe(each.task, KernelRecipe(programs[each.file], *of_kernel, schedule)))
        kernels = build_kernels(tasks, tools, len(os.sched_getaffinity(0)), progress)
    library = build_library(opened.steps, kernels, profile.halide_target, tools, output, progress)
    return replace(library, not_tuned=tuple(not_tuned))
