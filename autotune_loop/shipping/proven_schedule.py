"""A run's schedule as it is shipped, checked against its generator."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.shipping.files.cpp_headers import print_cpp_header
from halide_autotune.autotune_loop.shipping.files.func_table import algorithm_hash, read_func_table
from halide_autotune.autotune_loop.shipping.files.python_module import print_python_module
from halide_autotune.autotune_loop.shipping.provenance import make_provenance, shipped_parameters
from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule
from halide_autotune.autotune_loop.shipping.ship_folder import dispatch_target
from halide_autotune.autotune_loop.shipping.ship_manifest import ShippedSchedule
from halide_autotune.targets.build.artifacts import KernelRecipe, build_kernel
from halide_autotune.targets.build.object_code import is_same_code
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.generator.python_modules import SCHEDULE_MODULE_SUFFIX
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler


@dataclass(frozen=True)
class ProvenSchedule:
    """A schedule whose shipped header gives the same code as the run's own header.

    Attributes:
        program: the open generator.
        header_text, module_text: its files.
    """

    run: RunSchedule
    program: GeneratorProgram
    shipped: ShippedSchedule
    header_text: str
    module_text: str


def prove_schedule(
    run: RunSchedule, program: GeneratorProgram, compiler: HostCppCompiler, sdk_version: str
) -> ProvenSchedule:
    """Print the schedule for shipping and check that its header gives the same code as the run's own header.

    Raises:
        GeneratorError: the generator fails, or a header cannot be applied to it.
        ToolchainError: no C++ compiler is installed.
    """
    task, target = run.task, run.record.spec.profile.halide_target
    funcs = read_func_table(program, task.generator_name, run.parameters, target, compiler)
    size = "" if run.for_size is None else run.for_size.size
    provenance = make_provenance(run, algorithm_hash(funcs), sdk_version, size)
    # Functions and modules of several targets need different names.
    function_name = "_".join(filter(None, [run.name, re.sub(r"[^A-Za-z0-9]", "_", run.profile_name), run.place]))
    header_text = print_cpp_header(run.schedule, function_name, provenance, funcs)
    # The run's header is applied as in the run. The shipped one takes the generator's schedule off by itself.
    as_in_run = PipelinePreparation(build_preparation_plugin(compiler), task.estimates)
    as_shipped = replace(as_in_run, takes_schedule_off=False)
    shipped_code = _code(run, program, as_shipped, header_text, compiler)
    if not is_same_code(shipped_code, _code(run, program, as_in_run, run.header_text, compiler)):
        raise GeneratorError(
            f"{run.header} gives different code when it is printed for shipping. This is a bug in the SDK.",
            next_step="Report it and attach the header.",
        )
    shipped = ShippedSchedule(
        name=run.name,
        function_name=function_name,
        dispatch_target=dispatch_target(target),
        header=".".join(filter(None, [run.name, run.profile_name, run.place, "schedule.h"])),
        python_module=f"{function_name}{SCHEDULE_MODULE_SUFFIX}",
        provenance=provenance,
        parameters=shipped_parameters(run.parameters),
        funcs=funcs,
        for_size="" if run.for_size is None else run.for_size.extents,
    )
    module_text = print_python_module(run.schedule, function_name, provenance, funcs)
    return ProvenSchedule(run, program, shipped, header_text, module_text)


def _code(
    run: RunSchedule,
    program: GeneratorProgram,
    preparation: PipelinePreparation,
    header_text: str,
    compiler: HostCppCompiler,
) -> bytes:
    """The object code that the generator gives with a header."""
    task = run.task
    recipe = KernelRecipe(
        program,
        task.generator_name,
        task.function_name,
        run.parameters,
        run.record.spec.profile,
        ScheduleChoice(run.header.name, schedule_autoscheduler(header_text, compiler)),
        preparation=preparation,
    )
    with scratch_folder("ship") as folder:
        try:
            return build_kernel(recipe, folder).object_path.read_bytes()
        except GeneratorError as error:
            raise GeneratorError(f"{run.header} cannot be applied to its generator. {error.message}") from error
