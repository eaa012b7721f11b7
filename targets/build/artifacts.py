"""What a user ships: object, static library and header of a generator with a schedule, and a benchmark to run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from targets.build.executable import BuildTools, KernelObject, link_executable
from targets.cuda.device_code import CardCheck, run_checked_generator
from targets.errors import GeneratorError, ToolchainError, os_error_as
from targets.generator.program import GeneratorProgram
from targets.generator.run import GeneratorFailure, GeneratorRequest
from targets.process.limited_process import ProcessLimits
from targets.profile.profile import TargetProfile
from targets.schedule.autoschedulers import ScheduleChoice

_LIMITS = ProcessLimits(time_s=600.0, memory_bytes=8 * 2**30)
_SHIPPED = ("object", "static_library", "c_header")


@dataclass(frozen=True)
class KernelRecipe:
    """What a kernel is built from.

    Attributes:
        function_name: its symbol.
        parameters: the generator's parameters.
        ptxas: NVIDIA's assembler, for a profile with a card; without it fewer limits of the card are checked.
    """

    program: GeneratorProgram
    generator_name: str
    function_name: str
    parameters: Mapping[str, str]
    profile: TargetProfile
    schedule: ScheduleChoice
    ptxas: Path | None = None


@dataclass(frozen=True)
class Artifacts:
    """The files of a build.

    Attributes:
        object, static_library: they contain Halide's runtime.
        benchmark: checks and times the kernel on the target.
        toolchain: describes what linked the benchmark.
    """

    object: Path
    static_library: Path
    header: Path
    benchmark: Path
    toolchain: str


def build_artifacts(recipe: KernelRecipe, output: Path, tools: BuildTools) -> Artifacts:
    """Cross-compile the kernel into the folder `output`; either all files appear in it or none.

    Raises:
        GeneratorError: the generator or the schedule fails.
        ToolchainError: Halide, the C toolchain or the disk fails.
    """
    name, target = recipe.function_name, recipe.profile.halide_target
    with os_error_as(ToolchainError, f"{output} cannot be written"):
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=output) as folder:
            shipped = _generate(recipe, Path(folder), target, _SHIPPED)
            kernel = build_kernel(recipe, Path(folder) / "kernel")
            benchmark = link_executable([kernel], target, tools, Path(folder) / f"{name}_benchmark")
            made = [*(shipped[key] for key in _SHIPPED), benchmark.path]
            placed = [output / path.name for path in made]
            for path, place in zip(made, placed, strict=True):
                os.replace(path, place)
            return Artifacts(placed[0], placed[1], placed[2], placed[3], tools.toolchain.describe())


def build_kernel(recipe: KernelRecipe, folder: Path) -> KernelObject:
    """Build the kernel's object without Halide's runtime, to be linked with others.

    Raises:
        GeneratorError: the generator or the schedule fails, or the profile's card cannot run the kernel.
    """
    files = _generate(recipe, folder, recipe.profile.halide_target + "-no_runtime", ("object",))
    return KernelObject(recipe.function_name, files["object"])


def emit_featurization(recipe: KernelRecipe, folder: Path) -> Path:
    """Emit the features that the recipe's autoscheduler sees; no code is generated.

    Raises:
        GeneratorError: the generator fails.
    """
    return _generate(recipe, folder, recipe.profile.halide_target, ("featurization",))["featurization"]


def _generate(recipe: KernelRecipe, folder: Path, target: str, emit: tuple[str, ...]) -> Mapping[str, Path]:
    request = GeneratorRequest(
        generator_name=recipe.generator_name,
        function_name=recipe.function_name,
        base_name=recipe.function_name,
        output_folder=folder,
        emit=emit,
        halide_target=target,
        parameters=recipe.parameters,
        autoscheduler=recipe.schedule.autoscheduler,
    )
    card = recipe.profile.machine.gpu
    check = None if card is None else CardCheck(card, recipe.ptxas)
    result = run_checked_generator(recipe.program, request, _LIMITS, check)
    if isinstance(result, GeneratorFailure):
        raise GeneratorError(f"Schedule {recipe.schedule.label}: {result.message}")
    return result.files
