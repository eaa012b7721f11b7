"""A generator to tune in a run of several, with what is its own; and from it to the tasks of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from halide_autotune.autotune_loop.parameters.declared_space import declared_space
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask, published_names
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.project.further_sizes import with_further_sizes
from halide_autotune.sdk.project.pipeline_facts import know_pipeline
from halide_autotune.sdk.project.preparation import Workbench, check_function_name, open_named_generator
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.reference import parse_parameters, unqualified
from halide_autotune.targets.pipeline.estimates import EstimateOptions
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.target_features import NAME_MANGLING
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.options import check_options, with_whole_paths

# What a generator may take to tell its pipeline, if nothing else is asked for.
_INSPECTION_S, _INSPECTION_BYTES = 60.0, 8 * 2**30

if TYPE_CHECKING:
    from halide_autotune.sdk.settings import Settings


@dataclass(frozen=True)
class GeneratorSpec:
    """One generator of a run.

    Attributes:
        generator: `path.py[:name]`, `path.cpp[:name]` or a built `path.generator[:name]`.
        parameters: generator parameters, each `key=value`.
        argsets: further parameters, one collection for each argument set; every set is tuned.
        function_name: of the tuned function; None takes the generator's.
        incumbent: the header that is in use today, and to be beaten; None where there is none.
        build: what else a C++ generator is made from.
        tune: generator parameters that are tuned in its own schedule, with their values, such as '16..512:x2'; empty
            searches for schedules.
        restrict: conditions that the tuned values must fulfil.
        search_too: search for schedules as well as tune parameters.
        estimates: what it is tuned for, in place of its own estimates or where it has none.
        calls: how often whoever uses the run's generators together calls each argument set, so that what is called
            most gets the most time; empty where nobody says.
    """

    generator: str
    parameters: tuple[str, ...] = ()
    argsets: tuple[tuple[str, ...], ...] = ((),)
    function_name: str | None = None
    incumbent: Path | None = None
    build: CppBuild = field(default_factory=CppBuild)
    tune: Mapping[str, str] = field(default_factory=dict)
    restrict: tuple[str, ...] = ()
    search_too: bool = False
    estimates: EstimateOptions = field(default_factory=EstimateOptions)
    calls: tuple[float, ...] = ()


def generator_specs(generator: str | GeneratorSpec | Sequence[str | GeneratorSpec]) -> tuple[GeneratorSpec, ...]:
    """What a caller gave as generator.

    Raises:
        UsageError: none.
    """
    given = [generator] if isinstance(generator, str | GeneratorSpec) else list(generator)
    if not given:
        raise UsageError("There is no generator to tune.")
    return tuple(GeneratorSpec(item) if isinstance(item, str) else item for item in given)


def asked_options(
    options: RunOptions | None, target: str | None = None, device: str | Sequence[str] = ()
) -> RunOptions:
    """What a caller gave, checked, with paths that mean the same in any folder.

    Raises:
        UsageError: one message about the first value that is wrong.
    """
    options = options or RunOptions()
    names = (device,) if isinstance(device, str) else tuple(device)
    target = target or options.devices.target
    if target is not None and "/" in target:
        target = str(Path(target).absolute())
    for name in options.inputs.files.keys() & options.inputs.sizes.keys():
        raise UsageError(f"--input {name} takes its size from its file: leave out --size {name}.")
    devices = replace(options.devices, target=target, device=names or options.devices.device)
    return with_whole_paths(check_options(replace(options, devices=devices)))


def with_name_mangling(options: RunOptions, specs: Sequence[GeneratorSpec]) -> RunOptions:
    """The options of a run whose functions are in namespaces, where one of them is: Halide then mangles all names."""
    if not any("::" in (spec.function_name or "") for spec in specs):
        return options
    features = dict.fromkeys((*options.devices.target_features, NAME_MANGLING))
    return replace(options, devices=replace(options.devices, target_features=tuple(features)))


def tuning_tasks(
    specs: Sequence[GeneratorSpec],
    options: RunOptions,
    halide_target: str,
    workbench: Workbench,
    settings: Settings,
    tell: Callable[[str], None],
) -> tuple[tuple[TuningTask, ...], KernelInputs]:
    """The tasks of a run, one for each argument set of each generator; and what their kernels are called with.

    Args:
        tell: called with a sentence for everything that is assumed about a pipeline.

    Raises:
        GeneratorError, ToolchainError: a generator cannot be built, registers no such name, or lacks an estimate.
        UsageError: two generators have one function name, an incumbent or an estimate is for none of them, or
            parameters cannot be tuned as asked.
    """
    tasks: list[TuningTask] = []
    inputs = options.inputs
    limits = ProcessLimits(
        options.limits.search_limit_s or _INSPECTION_S, options.limits.memory_limit_bytes or _INSPECTION_BYTES
    )
    is_alone = len(specs) == 1 and len(specs[0].argsets) == 1
    if inputs.also_sizes and not is_alone:
        raise UsageError(
            "--also-size is for one generator with one set of parameters: others may have other arguments.",
            next_step="Tune the others in runs of their own.",
        )
    for spec in specs:
        build = with_whole_paths(spec.build)
        with open_named_generator(spec.generator, spec.parameters, workbench, settings, build) as (reference, program):
            assert reference.name is not None
            declared = program.parameters(reference.name) if spec.tune else {}
            name = unqualified(check_function_name(spec.function_name or reference.name))
            if any(task.function_name == name for task in tasks):
                raise UsageError(
                    f"Two generators would be tuned under the name {name!r}.",
                    next_step="Give one of them a function_name in sdk.toml, or tune them in two runs.",
                )
            bare = replace(reference, parameters={})
            for place, argset in enumerate(spec.argsets):
                parameters = {**reference.parameters, **parse_parameters(argset)}
                inspected = Inspected(program, reference.name, parameters, halide_target, limits)
                known = know_pipeline(inspected, spec.estimates, options.inputs, workbench.compiler)
                for notice in known.notices(reference.name):
                    tell(notice)
                inputs = known.typed(inputs)
                if is_alone:
                    inputs = known.called_with(inputs)
                if inputs.also_sizes:
                    inputs = with_further_sizes(inspected, known, inputs, workbench.compiler, tell)
                space = declared_space(spec.tune, spec.restrict, parameters, declared, reference.name)
                has_own = (
                    space is None
                    and not options.play_off.ignores_own
                    and known.schedules_itself(inspected, workbench.compiler, can_tell_sizes=is_alone)
                )
                incumbent = spec.incumbent if place == 0 else None
                if spec.search_too and space is None:
                    raise UsageError("--search-too goes with --tune.", next_step="Leave it out to search alone.")
                searches = space is None or spec.search_too
                calls = spec.calls[place] if spec.calls else None
                facts = (incumbent, space, has_own, known.estimates, searches, calls)
                tasks.append(TuningTask(bare, name, parameters, *facts))
    return with_incumbents(tasks, options.play_off.incumbents), inputs


def with_incumbents(tasks: Sequence[TuningTask], incumbents: Mapping[str, Path]) -> tuple[TuningTask, ...]:
    """The tasks with the headers that are in use today, by the tasks' names; '' is that of the only task.

    Raises:
        UsageError: one is for none of the tasks.
    """
    names = published_names(tasks)
    for name, header in incumbents.items():
        if name not in (*names, ""):
            raise UsageError(
                f"The incumbent {header} is for {name!r}, which is not tuned.",
                next_step=f"These are: {', '.join(names)}.",
            )
        if name == "" and len(tasks) > 1:
            raise UsageError(
                f"The incumbent {header} could be for any of {', '.join(names)}.",
                next_step=f"Name one, such as --incumbent {names[0]}={header}",
            )
    with_headers = tuple(
        replace(task, incumbent=incumbents.get(name, incumbents.get("", task.incumbent)))
        for task, name in zip(tasks, names, strict=True)
    )
    for task in with_headers:
        if task.space is not None and task.incumbent is not None:
            raise UsageError(
                f"The incumbent {task.incumbent} is a schedule, but parameters of {task.generator_name} are tuned.",
                next_step="Leave it out; give the parameters in use today as the generator's defaults.",
            )
    return with_headers


def run_name(specs: Sequence[GeneratorSpec], tasks: Sequence[TuningTask]) -> str:
    """What a run's folder is called by: the function, and how many generators there are beside it."""
    more = len(specs) - 1
    return tasks[0].function_name if more == 0 else f"{tasks[0].function_name}-and-{more}-more"
