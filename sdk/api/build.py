"""`sdk.build`: cross-compile a generator with a schedule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.options.generator_spec import GeneratorSpec, asked_options, generator_specs, with_name_mangling
from halide_autotune.sdk.project.input_files import prepared_inputs
from halide_autotune.sdk.project.pipeline_facts import prepare_pipeline
from halide_autotune.sdk.project.preparation import (
    check_function_name,
    named_profile,
    open_named_generator,
    open_workbench,
)
from halide_autotune.sdk.select.hexagon_choice import named_hexagon_sdk
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.build.artifacts import Artifacts, BenchmarkArguments, KernelRecipe, build_artifacts
from halide_autotune.targets.build.executable import BuildTools
from halide_autotune.targets.build.kernel_sources import KernelSources
from halide_autotune.targets.cuda.ptxas import find_ptxas
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.schedule.autoschedulers import resolve_schedule
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain


def build(
    generator: str | GeneratorSpec,
    output: Path,
    *,
    target: str | None = None,
    schedule: str = OWN_SCHEDULE,
    options: RunOptions | None = None,
    progress: Callable[[str], None] = lambda text: None,
    settings: Settings | None = None,
) -> Artifacts:
    """Cross-compile a generator: object, static library, header and a benchmark that runs on the target.

    Args:
        generator: `path.py[:name]`, `path.cpp[:name]` or a built `path.generator[:name]`; or a GeneratorSpec, with
            generator parameters and the name of the function.
        output: the folder for the files.
        target: name or path of a target profile; None takes that of `options`, else this machine's.
        schedule: path of a `.schedule.h`; 'own' is the generator's; or the name of the profile's autoscheduler
            ('adams2019', 'anderson2021'), 'mullapudi2016' or 'li2018'.
        options: those of the devices, of which the features of the target count, the threads that an autoscheduler
            plans for, and the Hexagon SDK, which links the benchmark for a Hexagon target; and the inputs, which the
            benchmark has where it is called with no others.
        progress: called with a phrase at every step that may take long.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    (spec,) = generator_specs(generator)
    settings = settings or read_settings()
    asked = with_name_mangling(asked_options(options, target), [spec])
    profile = named_profile(asked.devices, settings)
    hexagon_sdk = named_hexagon_sdk(profile, asked.devices.hexagon_sdk_root, settings)
    toolchain = open_toolchain(profile, settings.cache_folder, settings.ndk_root, hexagon_sdk)
    toolchain.version()  # fails early if the toolchain is broken
    bench = open_workbench(settings, progress)
    with open_named_generator(spec.generator, spec.parameters, bench, settings, spec.build) as (reference, program):
        assert reference.name is not None
        threads = asked.devices.parallelism or profile.machine.parallelism
        choice = resolve_schedule(schedule, profile, threads, bench.halide, bench.apply_header)
        name = check_function_name(spec.function_name or reference.name)
        ptxas = find_ptxas(settings.environment)
        inspected = Inspected(program, reference.name, reference.parameters, profile.halide_target)
        preparation, known_inputs = prepare_pipeline(
            inspected, spec.estimates, asked.inputs, bench.compiler, must_be_whole=choice.searches
        )
        recipe = KernelRecipe(program, reference.name, name, reference.parameters, profile, choice, ptxas, preparation)
        tools = BuildTools(bench.halide, bench.cache, toolchain, KernelSources.of(reference.build))
        with prepared_inputs(known_inputs) as inputs:
            called_with = BenchmarkArguments(inputs.seed, inputs.sizes, inputs.scalars, inputs.files)
            return build_artifacts(recipe, output, tools, called_with)
