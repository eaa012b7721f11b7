"""A run's schedule as it is shipped, checked against its generator."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.shipping.files.cpp_headers import print_cpp_header
from autotune_loop.shipping.files.func_table import algorithm_hash, read_func_table
from autotune_loop.shipping.files.python_module import print_python_module
from autotune_loop.shipping.provenance import make_provenance
from autotune_loop.shipping.run_schedule import RunSchedule
from autotune_loop.shipping.ship_folder import dispatch_target
from autotune_loop.shipping.ship_manifest import ShippedSchedule
from targets.errors import GeneratorError
from targets.generator.program import GeneratorProgram
from targets.generator.run import GeneratorFailure, GeneratorRequest, run_generator
from targets.process.limited_process import ProcessLimits
from targets.schedule.plugins import schedule_autoscheduler
from targets.toolchain.host_cpp_compiler import HostCppCompiler

_LIMITS = ProcessLimits(time_s=600.0, memory_bytes=8 * 2**30)


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
    funcs = read_func_table(program, task.generator, task.parameters, target, compiler)
    provenance = make_provenance(run.record, task, run.times, algorithm_hash(funcs), sdk_version)
    # Functions and modules of several targets need different names.
    function_name = f"{task.name}_{re.sub(r'[^A-Za-z0-9]', '_', run.profile_name)}"
    header_text = print_cpp_header(run.schedule, function_name, provenance, funcs)
    if _code(run, program, compiler, header_text) != _code(run, program, compiler, run.header_text):
        raise GeneratorError(
            f"{run.header} gives different code when it is printed for shipping. This is a bug in the SDK.",
            next_step="Report it and attach the header.",
        )
    shipped = ShippedSchedule(
        name=task.name,
        function_name=function_name,
        dispatch_target=dispatch_target(target),
        header=f"{task.name}.{run.profile_name}.schedule.h",
        python_module=f"{function_name}_schedule.py",
        provenance=provenance.constants(),
        parameters=provenance.origin.parameters,
        funcs=funcs,
    )
    module_text = print_python_module(run.schedule, function_name, provenance, funcs)
    return ProvenSchedule(run, program, shipped, header_text, module_text)


def _code(run: RunSchedule, program: GeneratorProgram, compiler: HostCppCompiler, header_text: str) -> bytes:
    """The object code that the generator gives with a header."""
    with tempfile.TemporaryDirectory(prefix="sdk-ship-") as folder:
        request = GeneratorRequest(
            generator_name=run.task.generator,
            function_name=run.task.function_name,
            base_name="kernel",
            output_folder=Path(folder),
            emit=("object",),
            halide_target=run.record.spec.profile.halide_target + "-no_runtime",
            parameters=run.task.parameters,
            autoscheduler=schedule_autoscheduler(header_text, compiler),
        )
        result = run_generator(program, request, _LIMITS)
        if isinstance(result, GeneratorFailure):
            raise GeneratorError(f"{run.header} cannot be applied to its generator. {result.message}")
        return result.files["object"].read_bytes()
