"""From the command line of `sdk autotune` to the values that the loop is called with."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from autotune_loop.farm.fair_share import RunPriority
from autotune_loop.specification.objective import Objective
from autotune_loop.specification.tune_request import LOSSES, LearningOptions, SamplingOptions
from devices.timing.measure_settings import KernelInputs
from sdk.options.argument_sets import parse_argument_sets
from sdk.options.autotune_arguments import AutotuneArguments
from sdk.options.generator_spec import GeneratorSpec
from sdk.options.kernel_arguments import parse_input_files, parse_scalars, parse_sizes
from sdk.options.memory_size import parse_memory_bytes
from sdk.options.objective_arguments import parse_objective
from sdk.project.file import FILE_NAME, Project
from sdk.project.preparation import check_function_name, parse_duration_s
from sdk.project.run_folders import check_run_folder
from targets.errors import UsageError
from targets.generator.reference import parse_parameters

# Adams2019 reads its seed into an int; the runner reads the inputs' into 64 bits.
_HIGHEST_SEED = 2**31 - 1
_HIGHEST_INPUT_SEED = 2**63 - 1

_T = TypeVar("_T")


@dataclass(frozen=True)
class AutotuneCall:
    """Checked values for `sdk.autotune`.

    Attributes:
        run_folder: None where one is still to be found or made.
        inputs: without their files.
        input_files: argument → `.npy` file, still to be converted.
    """

    generators: tuple[GeneratorSpec, ...]
    target: str | None
    devices: tuple[str, ...]
    inventory: Path | None
    patience_s: float
    clock: str | None
    hexagon_sdk_root: Path | None
    scheduler: str | None
    farm_certificates: Path | None
    priority: RunPriority
    incumbents: dict[str, Path]
    objective: Objective
    play_off_turns: int
    parallelism: int | None
    run_folder: Path | None
    resume: bool
    rounds: int
    budget_s: float | None
    weights: str | None
    sampling: SamplingOptions
    learning: LearningOptions
    inputs: KernelInputs
    input_files: dict[str, Path]
    build_jobs: int | None
    search_limit_s: float
    full_search_limit_s: float | None
    memory_limit_bytes: int | None


def read_arguments(given: AutotuneArguments, project: Project) -> AutotuneCall:
    """Check everything that can be checked without starting anything.

    Args:
        project: what `sdk.toml` says, used where the command line says nothing.

    Raises:
        UsageError: one message about the first value that is wrong.
    """
    return AutotuneCall(
        generators=_generators(given, project),
        # The project's default gives way to devices that are named.
        target=given.target or (None if given.device else project.default_target),
        devices=tuple(given.device or ()),
        inventory=given.inventory,
        patience_s=_named("--device-patience", parse_duration_s, given.device_patience),
        clock=given.clock,
        hexagon_sdk_root=given.hexagon_sdk_root,
        scheduler=given.scheduler,
        farm_certificates=given.farm_certificates,
        priority=_priority(given.priority),
        incumbents=_incumbents(given.incumbent or ()),
        objective=parse_objective(given.objective, given.device_weight or (), given.worst_tolerance),
        play_off_turns=given.play_off_turns,
        parallelism=given.parallelism,
        run_folder=_run_folder(given),
        resume=given.resume,
        rounds=given.num_batches,
        budget_s=_budget_s(given, project),
        weights=given.weights,
        sampling=sampling_options(given),
        learning=learning_options(given),
        inputs=_inputs(given),
        input_files=parse_input_files(given.input or ()),
        build_jobs=given.jobs,
        search_limit_s=_named("--search-limit", parse_duration_s, given.search_limit),
        full_search_limit_s=_optional("--full-search-limit", parse_duration_s, given.full_search_limit),
        memory_limit_bytes=_optional("--memory-limit", parse_memory_bytes, given.memory_limit),
    )


def _priority(text: str) -> RunPriority:
    try:
        return RunPriority(text)
    except ValueError:
        choices = ", ".join(priority.value for priority in RunPriority)
        raise UsageError(f"--priority must be one of {choices}, not {text[:80]!r}.") from None


def _generators(given: AutotuneArguments, project: Project) -> tuple[GeneratorSpec, ...]:
    """Those of the project have parameters of their own, which the command line's come after."""
    sets, parameters = given.generator_arg_sets, tuple(given.parameters or ())
    parse_parameters(parameters)
    name = None if given.function_name is None else check_function_name(given.function_name)
    wanted = project.resolve_all(given.generator or ())
    if len(wanted) > 1 and (sets is not None or name is not None):
        option = "--function-name" if sets is None else "--generator-arg-sets"
        raise UsageError(
            f"{option} cannot be given to several generators.",
            next_step=f"Write it into [[generators]] of {FILE_NAME}.",
        )
    specs = []
    for entry in wanted:
        text = entry.argument_sets if sets is None else sets
        spec = GeneratorSpec(
            generator=_from_here(entry.generator),
            parameters=(*entry.parameters, *parameters),
            argsets=((),) if text is None else parse_argument_sets(text),
            function_name=name or entry.function_name,
            incumbent=None if entry.incumbent is None else Path(entry.incumbent),
        )
        specs.append(spec)
    return tuple(specs)


def _incumbents(texts: Sequence[str]) -> dict[str, Path]:
    """Name → header, of NAME=HEADER; '' for a header alone."""
    incumbents: dict[str, Path] = {}
    for text in texts:
        name, separator, header = text.partition("=")
        if not separator or Path(text).is_file():
            name, header = "", text
        if name in incumbents:
            raise UsageError(f"--incumbent is given twice{f' for {name}' if name else ''}.")
        if not Path(header).is_file():
            raise UsageError(f"--incumbent: there is no file {header}.", next_step="Give the path of a .schedule.h.")
        incumbents[name] = Path(header)
    return incumbents


def _from_here(generator: str) -> str:
    """A path below the current folder, or beside it, as a user would write it."""
    here = Path.cwd()
    return os.path.relpath(generator, here) if Path(generator).is_relative_to(here) else generator


def _run_folder(given: AutotuneArguments) -> Path | None:
    if given.run_dir is None or not given.resume:
        return given.run_dir
    return check_run_folder(given.run_dir)


def _budget_s(given: AutotuneArguments, project: Project) -> float | None:
    if given.budget is None and project.budget is not None:
        return _named(f"{project.folder / FILE_NAME}: budget", parse_duration_s, project.budget)
    return _optional("--budget", parse_duration_s, given.budget)


def _inputs(given: AutotuneArguments) -> KernelInputs:
    sizes = parse_sizes(given.size or ())
    for name in parse_input_files(given.input or ()):
        if name in sizes:
            raise UsageError(f"--input {name} takes its size from its file: leave out --size {name}.")
    seed = _seed("--input-seed", given.input_seed, _HIGHEST_INPUT_SEED)
    return KernelInputs(seed=seed, sizes=sizes, scalars=parse_scalars(given.scalar or ()))


def sampling_options(given: AutotuneArguments) -> SamplingOptions:
    """How schedules are sampled; raises UsageError for a value out of its range."""
    return SamplingOptions(
        batch_size=given.batch_size,
        pool_factor=_number("--pool-factor", given.pool_factor, 1.0, 100.0),
        random_share=_number("--random-share", given.random_share, 0.0, 1.0),
        diversity=_number("--diversity", given.diversity, 0.0, 1e6),
        seed=_seed("--seed", given.seed, _HIGHEST_SEED),
    )


def learning_options(given: AutotuneArguments) -> LearningOptions:
    """How the cost model learns; raises UsageError for a value out of its range."""
    if given.loss not in LOSSES:
        raise UsageError(f"--loss must be {' or '.join(LOSSES)}, not {given.loss!r}.")
    if not 0 < given.learning_rate <= 1:
        raise UsageError(f"--learning-rate must be above 0 and at most 1, not {given.learning_rate:g}.")
    return LearningOptions(loss=given.loss, epochs=given.epochs, learning_rate=given.learning_rate)


def _number(option: str, value: float, lowest: float, highest: float) -> float:
    if not (math.isfinite(value) and lowest <= value <= highest):
        raise UsageError(f"{option} must be from {lowest:g} to {highest:g}, not {value:g}.")
    return value


def _seed(option: str, value: int, highest: int) -> int:
    if not 0 <= value <= highest:
        raise UsageError(f"{option} must be from 0 to {highest}, not {value}.")
    return value


def _optional(option: str, parse: Callable[[str], _T], text: str | None) -> _T | None:
    return None if text is None else _named(option, parse, text)


def _named(option: str, parse: Callable[[str], _T], text: str) -> _T:
    """The parsed text; a complaint names the option."""
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", next_step=error.next_step) from error
