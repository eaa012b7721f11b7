"""What a user ships: object, static library and header of a generator with a schedule, and a benchmark to run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.targets.build.executable import BuildTools, KernelObject, link_executable
from halide_autotune.targets.cuda.device_code import CardCheck, run_checked_generator
from halide_autotune.targets.errors import GeneratorError, ToolchainError, os_error_as
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.generator.reference import unqualified
from halide_autotune.targets.generator.run import AutoschedulerRequest, GeneratorFailure, GeneratorRequest
from halide_autotune.targets.pipeline.preparation import PipelinePreparation
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.process.output_folder import output_folder
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.profile.target_features import kernel_target
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice

_LIMITS = ProcessLimits(time_s=600.0, memory_bytes=8 * 2**30)
_SHIPPED = ("object", "static_library", "c_header")


@dataclass(frozen=True)
class KernelRecipe:
    """What a kernel is built from.

    Attributes:
        function_name: its symbol; with its namespaces, if it is mangled.
        parameters: the generator's parameters.
        ptxas: NVIDIA's assembler, for a profile with a card; without it fewer limits of the card are checked.
        preparation: of the pipeline, before an autoscheduler runs or a header is applied; None for none.
    """

    program: GeneratorProgram
    generator_name: str
    function_name: str
    parameters: Mapping[str, str]
    profile: TargetProfile
    schedule: ScheduleChoice
    ptxas: Path | None = None
    preparation: PipelinePreparation | None = None


@dataclass(frozen=True)
class Artifacts:
    """The files of a build.

    Attributes:
        object, static_library: they contain Halide's runtime.
        benchmark: checks and times the kernel on the target.
        toolchain: describes what linked the benchmark.
        inputs: the files that the benchmark reads; they go where it goes.
    """

    object: Path
    static_library: Path
    header: Path
    benchmark: Path
    toolchain: str
    inputs: tuple[Path, ...] = ()


@dataclass(frozen=True)
class BenchmarkArguments:
    """What a benchmark calls its kernel with, where it is not told otherwise.

    Attributes:
        seed: of random inputs.
        sizes, scalars: as the runner's options, by the arguments' names.
        files: input files of the runner, by the arguments' names.
    """

    seed: int = 0
    sizes: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)


def build_artifacts(
    recipe: KernelRecipe, output: Path, tools: BuildTools, called_with: BenchmarkArguments | None = None
) -> Artifacts:
    """Cross-compile the kernel into the folder `output`; either all files appear in it or none.

    Raises:
        GeneratorError: the generator or the schedule fails.
        ToolchainError: Halide, the C toolchain or the disk fails.
    """
    name, target = unqualified(recipe.function_name), recipe.profile.halide_target
    with (
        os_error_as(ToolchainError, f"{output} cannot be written"),
        output_folder(output),
        scratch_folder("build", output) as folder,
    ):
        shipped = _generate(recipe, folder, target, _SHIPPED)
        called_with = called_with or BenchmarkArguments()
        inputs = {argument: folder / f"{name}_{argument}.raw" for argument in called_with.files}
        for argument, path in inputs.items():
            shutil.copyfile(called_with.files[argument], path)
        kernel = build_kernel(replace(recipe, function_name=name), folder / "kernel")
        defaults = _runner_options(called_with, inputs)
        benchmark = link_executable([kernel], target, tools, folder / f"{name}_benchmark", defaults=defaults)
        made = [*(shipped[key] for key in _SHIPPED), benchmark.path, *inputs.values()]
        placed = [output / path.name for path in made]
        for path, place in zip(made, placed, strict=True):
            os.replace(path, place)
        described = tools.toolchain.describe()
        return Artifacts(placed[0], placed[1], placed[2], placed[3], described, tuple(placed[4:]))


def _runner_options(called_with: BenchmarkArguments, inputs: Mapping[str, Path]) -> list[str]:
    options = ["--seed", str(called_with.seed)] if called_with.seed else []
    files = {argument: path.name for argument, path in inputs.items()}
    for option, values in (("--size", called_with.sizes), ("--scalar", called_with.scalars), ("--input", files)):
        for argument, value in values.items():
            options += [option, f"{argument}={value}"]
    return options


def build_kernel(recipe: KernelRecipe, folder: Path, stop: StopSignal | None = None) -> KernelObject:
    """Build the kernel's object without Halide's runtime, to be linked with others.

    Raises:
        GeneratorError: the generator or the schedule fails, the profile's card cannot run the kernel, or `stop` is set.
    """
    files = _generate(recipe, folder, kernel_target(recipe.profile.halide_target), ("object",), stop)
    return KernelObject(recipe.function_name, files["object"])


def _generate(
    recipe: KernelRecipe, folder: Path, target: str, emit: tuple[str, ...], stop: StopSignal | None = None
) -> Mapping[str, Path]:
    request = GeneratorRequest(
        generator_name=recipe.generator_name,
        function_name=recipe.function_name,
        base_name=unqualified(recipe.function_name),
        output_folder=folder,
        emit=emit,
        halide_target=target,
        parameters=recipe.parameters,
        autoscheduler=_autoscheduler(recipe),
    )
    card = recipe.profile.machine.gpu
    check = None if card is None else CardCheck(card, recipe.ptxas)
    result = run_checked_generator(recipe.program, request, _LIMITS, check, stop)
    if isinstance(result, GeneratorFailure):
        raise GeneratorError(f"Schedule {recipe.schedule.label}: {result.message}")
    return result.files


def _autoscheduler(recipe: KernelRecipe) -> AutoschedulerRequest | None:
    chosen = recipe.schedule.autoscheduler
    return chosen if chosen is None or recipe.preparation is None else recipe.preparation.before(chosen)
