"""A run's parameters as they are shipped, checked against their generator."""

from __future__ import annotations

from dataclasses import dataclass

from halide_autotune.autotune_loop.shipping.files.func_table import algorithm_hash, read_func_table
from halide_autotune.autotune_loop.shipping.files.parameter_files import print_parameter_files
from halide_autotune.autotune_loop.shipping.provenance import Provenance, make_provenance, shipped_parameters
from halide_autotune.autotune_loop.shipping.run_parameters import RunParameters
from halide_autotune.autotune_loop.shipping.run_winner import RunWinner
from halide_autotune.autotune_loop.shipping.ship_manifest import ShippedParameters
from halide_autotune.targets.build.artifacts import KernelRecipe, build_kernel
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler


@dataclass(frozen=True)
class ProvenParameters:
    """Parameters with which the generator's own schedule compiles.

    Attributes:
        texts: its files.
    """

    shipped: ShippedParameters
    texts: dict[str, str]


def prove_parameters(
    run: RunParameters, program: GeneratorProgram, compiler: HostCppCompiler, sdk_version: str
) -> ProvenParameters:
    """Build the generator's own schedule with the parameters, and print them for shipping.

    Raises:
        GeneratorError: the generator fails with them.
        ToolchainError: no C++ compiler is installed.
    """
    task, profile = run.task, run.record.spec.profile
    own = ScheduleChoice(OWN_SCHEDULE, None)
    recipe = KernelRecipe(program, task.generator_name, task.function_name, run.parameters, profile, own)
    with scratch_folder("ship") as folder:
        try:
            build_kernel(recipe, folder)
        except GeneratorError as error:
            raise GeneratorError(f"{run.path} does not fit its generator. {error.message}") from error
    funcs = read_func_table(program, task.generator_name, run.parameters, profile.halide_target, compiler)
    return shipped_set(run, make_provenance(run, algorithm_hash(funcs), sdk_version))


def shipped_set(run: RunWinner, facts: Provenance) -> ProvenParameters:
    """The parameters of a winner that was proven, in their files."""
    values = dict(run.facts.published.parameters)
    texts = print_parameter_files(run.name, run.profile_name, values, facts)
    shipped = ShippedParameters(
        name=run.name,
        target_profile=run.profile_name,
        files=tuple(texts),
        provenance=facts,
        parameters=shipped_parameters(run.task.parameters),
        tuned=values,
    )
    return ProvenParameters(shipped, texts)
