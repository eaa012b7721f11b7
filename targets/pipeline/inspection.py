"""Ask a generator for its pipeline without compiling it: the arguments, their sizes, its own schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.preload import Preload
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.generator.run import (
    EMITTED_SUFFIXES,
    AutoschedulerRequest,
    GeneratedFiles,
    GeneratorFailure,
    GeneratorRequest,
    plain_folder,
    run_generator,
)
from halide_autotune.targets.pipeline.estimates import plugin_text
from halide_autotune.targets.pipeline.facts import PipelineFacts
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.targets.values.records import Source, record

_PLUGIN = Path(__file__).parent / "inspection_plugin.cpp"
_AUTOSCHEDULER = "SdkInspect"
_BASE_NAME = "inspected"
_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=8 * 2**30)


@dataclass(frozen=True)
class Inspected:
    """A generator whose pipeline is asked for.

    Attributes:
        parameters: the generator's.
        halide_target: Halide's target string.
        limits: of the generator's process.
    """

    program: GeneratorProgram
    generator_name: str
    parameters: Mapping[str, str]
    halide_target: str
    limits: ProcessLimits = _LIMITS


def run_until_ended(
    inspected: Inspected,
    folder: Path,
    autoscheduler: AutoschedulerRequest | None,
    preload: Preload | None = None,
    stop: StopSignal | None = None,
) -> GeneratedFiles | GeneratorFailure:
    """Run the generator for a plug-in that ends it before it generates code, once it has written what is asked for.

    Args:
        folder: by a path that Halide's command line takes; see `plain_folder`.

    Returns:
        Mostly the failure that such an end looks like: what the plug-in has written says whether it is one.
    """
    request = GeneratorRequest(
        generator_name=inspected.generator_name,
        function_name=inspected.generator_name,
        base_name="pipeline",
        output_folder=folder,
        emit=("object",),
        halide_target=inspected.halide_target,
        parameters=inspected.parameters,
        autoscheduler=autoscheduler,
    )
    return run_generator(inspected.program, request, inspected.limits, stop, preload)


def inspect_pipeline(
    inspected: Inspected, given: Mapping[str, str], compiler: HostCppCompiler
) -> PipelineFacts | GeneratorFailure:
    """Return the pipeline's facts, with what is `given` for its arguments in place of its own estimates.

    Sizes that neither says are inferred from the others; what cannot be is a default.

    Raises:
        GeneratorError: the report is damaged.
        ToolchainError: no C++ compiler is installed.
    """
    parameters = {"estimates": plugin_text(given)} if given else {}
    return _facts(inspected, AutoschedulerRequest(_AUTOSCHEDULER, (), parameters), compiler)


def schedules_itself(inspected: Inspected, compiler: HostCppCompiler) -> bool:
    """Whether the generator schedules its pipeline where no autoscheduler runs.

    Raises:
        GeneratorError, ToolchainError: as `inspect_pipeline`.
    """
    facts = _facts(inspected, None, compiler)
    return isinstance(facts, PipelineFacts) and bool(facts.scheduled)


def _facts(
    inspected: Inspected, autoscheduler: AutoschedulerRequest | None, compiler: HostCppCompiler
) -> PipelineFacts | GeneratorFailure:
    plugin = compiler.build_plugin(_PLUGIN)
    with scratch_folder("pipeline") as scratch, plain_folder(scratch) as folder:
        report = folder / f"{_BASE_NAME}{EMITTED_SUFFIXES['schedule']}"
        request = GeneratorRequest(
            generator_name=inspected.generator_name,
            function_name=_BASE_NAME,
            base_name=_BASE_NAME,
            output_folder=folder,
            # The plug-in writes the report and ends the generator before Halide writes a schedule.
            emit=("schedule",),
            halide_target=inspected.halide_target,
            parameters=inspected.parameters,
            autoscheduler=autoscheduler,
        )
        preload = Preload(plugin, {"SDK_REPORT_PATH": str(report)})
        result = run_generator(inspected.program, request, inspected.limits, preload=preload)
        if isinstance(result, GeneratorFailure):
            return result
        source = Source(report, GeneratorError)
        return source.check(record(PipelineFacts), source.json(source.read(report)))
