"""`sdk.suggest`: schedules for a generator without a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from halide_autotune.autotune_loop.search.hvx_floats import may_have_float_vectors
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior, learnt_prior
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.suggest.suggest_schedules import OpenedPipeline, suggest_schedules
from halide_autotune.autotune_loop.suggest.suggestion import Suggestions
from halide_autotune.sdk.options.generator_spec import GeneratorSpec, asked_options, generator_specs
from halide_autotune.sdk.project.pipeline_facts import prepare_pipeline
from halide_autotune.sdk.project.preparation import (
    check_function_name,
    named_profile,
    open_named_generator,
    open_workbench,
)
from halide_autotune.sdk.select.start_weights import nest_prior_of
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import GeneratorError, UsageError, WeightsError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.pipeline.shape import PipelineShape, describe_pipeline
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.profile.target_features import kernel_target
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

# For all schedules that are lowered together.
_LIMITS = ProcessLimits(time_s=1800.0, memory_bytes=8 * 2**30)


def suggest(
    generator: str | GeneratorSpec,
    *,
    target: str | None = None,
    count: int = 1,
    options: RunOptions | None = None,
    progress: Callable[[str], None] = lambda text: None,
    settings: Settings | None = None,
) -> Suggestions:
    """Suggest schedules for a generator without timing any: those that are expected to be fast, by what was learnt of
    other pipelines on such processors. No device is needed.

    Args:
        generator: as for `sdk.build`.
        target: name or path of a target profile, but for a GPU; None takes that of `options`, else this machine's.
        count: how many are wanted, the most promising first; there may be fewer.
        options: those of the devices, of which the target's features and the threads count.
        progress: called with a phrase at every step that may take long.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    (spec,) = generator_specs(generator)
    settings = settings or read_settings()
    asked = asked_options(options, target)
    profile = named_profile(asked.devices, settings)
    if profile.machine.gpu is not None:
        raise UsageError(
            f"Schedules can be suggested for processors only, and {profile.name} has a GPU.",
            next_step=f"Tune it, or let Halide choose: sdk build --schedule {profile.autoscheduler.name.lower()}.",
        )
    bench = open_workbench(settings, progress)
    progress("opening the generator")
    with open_named_generator(spec.generator, spec.parameters, bench, settings, spec.build) as (reference, program):
        assert reference.name is not None
        halide_target = kernel_target(profile.halide_target)
        inspected = Inspected(program, reference.name, reference.parameters, halide_target, _LIMITS)
        preparation, _ = prepare_pipeline(inspected, spec.estimates, asked.inputs, bench.compiler, tell=progress)
        preparation = preparation or PipelinePreparation(build_preparation_plugin(bench.compiler), {})
        pipeline = OpenedPipeline(
            inspected,
            preparation,
            bench.compiler,
            _described(inspected, preparation, bench.compiler, profile),
            check_function_name(spec.function_name or reference.name).rpartition("::")[2],
            asked.devices.parallelism or profile.machine.parallelism,
        )
        return suggest_schedules(pipeline, _prior(profile, settings, progress), count, progress)


def _described(
    inspected: Inspected, preparation: PipelinePreparation, compiler: HostCppCompiler, profile: TargetProfile
) -> PipelineShape:
    shape = describe_pipeline(inspected, preparation, compiler)
    if isinstance(shape, GeneratorFailure):
        raise GeneratorError(
            f"The pipeline of generator {inspected.generator_name} cannot be described: {shape.message}"
        )
    return replace(shape, has_float_vectors=may_have_float_vectors(profile.halide_target))


def _prior(profile: TargetProfile, settings: Settings, progress: Callable[[str], None]) -> NestPrior:
    """What was learnt for such processors; what comes with the SDK where that is damaged, or of another version."""
    try:
        found = learnt_prior(nest_prior_of(profile, settings))
    except WeightsError as error:
        progress(f"{error} What comes with the SDK is used instead.")
        found = learnt_prior(None)
    assert found is not None, "the SDK's own is of its version"
    return found
