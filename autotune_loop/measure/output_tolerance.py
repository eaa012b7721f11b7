"""The reference that outputs are compared with: how far they may be from it, and why it may not run."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.store.featurization import Featurization, uses_float
from halide_autotune.devices.timing.measure_settings import Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason
from halide_autotune.targets.build.artifacts import KernelRecipe
from halide_autotune.targets.errors import DeviceError, UsageError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.pipeline.shape import PipelineShape, describe_pipeline
from halide_autotune.targets.profile.target_features import kernel_target
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

# Schedules contract and reorder float arithmetic differently: an integer made from floats may be off by one, an index
# into a table made from floats may be the next one (Halide's local_laplacian: 3e-4 of the elements, by up to 1 % of
# the largest; none when all is compiled with strict_float), and a threshold may fall the other way in a few places.
# Integer arithmetic is exact.
_FLOAT_TOLERANCE = Tolerance(integer=1, mismatch_share=1e-3, far_scale=0.02, far_share=2e-5)
_EXACT = Tolerance()
# A schedule written by hand computes less or more than the others then.
_LEAST_COMMON = 0.5


def output_tolerance(features: Featurization) -> Tolerance:
    """Exact for a pipeline without float operations."""
    return tolerance_of(computes_with_floats=uses_float(features))


def pipeline_tolerance(recipe: KernelRecipe, compiler: HostCppCompiler) -> Tolerance | GeneratorFailure:
    """The same without a search, which a pipeline may have none of that succeeds, or only one of minutes."""
    shape = recipe_shape(recipe, compiler)
    return shape if isinstance(shape, GeneratorFailure) else tolerance_of(computes_with_floats=shape.has_floats)


def recipe_shape(recipe: KernelRecipe, compiler: HostCppCompiler) -> PipelineShape | GeneratorFailure:
    """Describe the pipeline of a recipe, whatever its schedule is."""
    target = kernel_target(recipe.profile.halide_target)
    inspected = Inspected(recipe.program, recipe.generator_name, recipe.parameters, target)
    preparation = recipe.preparation or PipelinePreparation(build_preparation_plugin(compiler))
    return describe_pipeline(inspected, preparation, compiler)


def tolerance_of(*, computes_with_floats: bool) -> Tolerance:
    """Exact for a pipeline without float operations."""
    return _FLOAT_TOLERANCE if computes_with_floats else _EXACT


def of_hand_written(tolerance: Tolerance) -> Tolerance:
    """The tolerance for a schedule written by hand, which may compute whole strips or tiles only."""
    return replace(tolerance, least_common=_LEAST_COMMON)


def check_reference_failure(failure: MeasureFailure) -> None:
    """Raise an error that another reference would not avoid.

    Raises:
        UsageError: the kernel has no arguments for the given sizes, scalars or inputs.
        DeviceError: no device is left.
    """
    if failure.reason is MeasureFailureReason.WRONG_ARGUMENTS:
        raise UsageError(
            f"The kernel cannot be called with these arguments: {failure.message}",
            next_step="Check --size, --scalar and --input against the generator's inputs and outputs.",
        )
    if failure.reason is MeasureFailureReason.DEVICE:
        raise DeviceError(failure.message)
