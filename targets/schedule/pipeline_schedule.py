"""The schedule of a generator's own pipeline, as Halide keeps it: hand-written ones as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.preload import Preload
from halide_autotune.targets.generator.run import (
    AutoschedulerRequest,
    GeneratorFailure,
    plain_folder,
)
from halide_autotune.targets.pipeline.inspection import Inspected, run_until_ended
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_READER_SOURCE = Path(__file__).parent / "schedule_reader.cpp"
_AUTOSCHEDULER = "SdkReadSchedule"
_LIMITS = ProcessLimits(time_s=300.0, memory_bytes=8 * 2**30)


@dataclass(frozen=True)
class ReadPipeline:
    """What `schedule_reader.cpp` writes of one generator.

    Attributes:
        scheduled: the pipeline as it is compiled where no autoscheduler runs.
        plain: the pipeline as autoschedulers get it from the SDK, without any schedule.
    """

    scheduled: Mapping[str, Any]
    plain: Mapping[str, Any]


def read_pipeline(inspected: Inspected, compiler: HostCppCompiler) -> ReadPipeline:
    """Read a generator's own schedule, whether or not it is under `using_autoscheduler()`; nothing is compiled.

    Raises:
        GeneratorError: the generator fails, or is linked with a Halide of its own.
        ToolchainError: no C++ compiler is installed.
    """
    reader = compiler.build_plugin(_READER_SOURCE)
    with scratch_folder("schedule") as scratch, plain_folder(scratch) as folder:
        own, plain = folder / "own.json", folder / "plain.json"
        failure = _run(inspected, folder, None, Preload(reader, {"SDK_SCHEDULE_PATH": str(own)}))
        scheduled = _written(own, inspected, failure)
        request = AutoschedulerRequest(_AUTOSCHEDULER, (reader,), {"read_to": str(plain)})
        failure = _run(inspected, folder, PipelinePreparation(build_preparation_plugin(compiler)).before(request), None)
        return ReadPipeline(scheduled, _written(plain, inspected, failure))


def _run(
    inspected: Inspected, folder: Path, autoscheduler: AutoschedulerRequest | None, preload: Preload | None
) -> GeneratorFailure | None:
    """Run the generator until the reader ends it; returns why it ended otherwise."""
    result = run_until_ended(replace(inspected, limits=_LIMITS), folder, autoscheduler, preload)
    return result if isinstance(result, GeneratorFailure) else None


def _written(file: Path, inspected: Inspected, failure: GeneratorFailure | None) -> Mapping[str, Any]:
    if file.is_file():
        read = json.loads(file.read_text(encoding="utf-8", errors="replace"))
        assert isinstance(read, dict)
        return read
    if failure is not None:
        raise GeneratorError(failure.message)
    raise GeneratorError(
        f"The schedule of generator {inspected.generator_name} cannot be read: it does not use the SDK's libHalide.so.",
        next_step="Link the generator with libHalide.so, not with a static library; or give its source.",
    )
