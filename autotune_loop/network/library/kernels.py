"""The kernels of a network's library: each task's generator, compiled with its schedule."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.network.tasks import NetworkTask
from halide_autotune.targets.build.artifacts import KernelRecipe, build_kernel
from halide_autotune.targets.build.executable import BuildTools, KernelObject
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.target_features import kernel_target


@dataclass(frozen=True)
class TaskRecipe:
    """How a task's kernel is built."""

    task: NetworkTask
    recipe: KernelRecipe


def build_kernels(
    tasks: Sequence[TaskRecipe], tools: BuildTools, at_once: int, progress: Callable[[str], None]
) -> list[KernelObject]:
    """Compile the kernels, without Halide's runtime; those that are in the cache are there at once.

    Args:
        at_once: how many are compiled at a time.
        progress: called with a phrase before each, from other threads.

    Raises:
        GeneratorError: a task's schedule does not compile; the message names its first layer.
        ToolchainError: Halide or the disk fails.
    """

    stop = StopSignal()

    def build(number: int) -> KernelObject:
        each = tasks[number]
        progress(f"operator {number + 1} of {len(tasks)}: {each.task.title}")
        return _build(each, tools, stop)

    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(build, number) for number in range(len(tasks))]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _build(task: TaskRecipe, tools: BuildTools, stop: StopSignal) -> KernelObject:
    try:
        return KernelObject(task.recipe.function_name, _cached(task.recipe, tools, stop))
    except GeneratorError as error:
        raise GeneratorError(
            f"Layer {task.task.places[0][0]} ({task.task.title}) cannot be built: {error.message}",
            next_step=error.next_step,
        ) from error


def _cached(recipe: KernelRecipe, tools: BuildTools, stop: StopSignal) -> Path:
    def build(output: Path) -> None:
        shutil.move(build_kernel(recipe, output.parent / "kernel", stop).object_path, output)

    parameters = sorted(recipe.parameters.items())
    # A header's plug-in is named by its content.
    schedule = recipe.schedule.autoscheduler
    target = kernel_target(recipe.profile.halide_target)
    made_of = [recipe.program.sha256, recipe.generator_name, recipe.function_name, repr(parameters), target]
    key = ["network kernel", tools.halide.fingerprint(), *made_of, repr(schedule)]
    return tools.cache.get_or_build(key, ".o", build)
