"""The schedule of a generator's own pipeline, as Halide keeps it: hand-written ones as data."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from targets.errors import GeneratorError
from targets.generator.program import open_generator
from targets.generator.reference import GeneratorReference, resolve_name
from targets.generator.run import GeneratorFailure, GeneratorRequest, run_generator
from targets.halide_install import HalideInstall
from targets.process.limited_process import ProcessLimits
from targets.toolchain.host_cpp_compiler import HostCppCompiler

_READER_SOURCE = Path(__file__).parent / "schedule_reader.cpp"
_PATH_VARIABLE = "HALIDE_SDK_SCHEDULE_PATH"
_LIMITS = ProcessLimits(time_s=300.0, memory_bytes=8 * 2**30)


def read_pipeline(
    reference: GeneratorReference,
    halide_target: str,
    halide: HalideInstall,
    compiler: HostCppCompiler,
    environment: Mapping[str, str],
) -> Mapping[str, Any]:
    """What `schedule_reader.cpp` writes of a generator's pipeline, scheduled as without an autoscheduler.

    The reader is loaded before the generator's libHalide and stands in for its compiler: it sees the schedule whether
    or not the generator asks for an autoscheduler, and nothing is compiled.

    Args:
        reference: its name may be missing if the file has one generator.

    Raises:
        GeneratorError: the generator fails, or was linked with a Halide of its own.
        ToolchainError: no C++ compiler is installed.
    """
    reader = compiler.build_plugin(_READER_SOURCE)
    with tempfile.TemporaryDirectory(prefix="sdk-schedule-") as folder:
        written = Path(folder) / "pipeline.json"
        preloaded = ":".join(filter(None, [str(reader), environment.get("LD_PRELOAD", "")]))
        inside = {**environment, "LD_PRELOAD": preloaded, _PATH_VARIABLE: str(written)}
        with contextlib.closing(open_generator(reference, halide, compiler, inside)) as program:
            name = resolve_name(reference, program.names).name
            assert name is not None
            request = GeneratorRequest(
                generator_name=name,
                function_name=name,
                base_name="pipeline",
                output_folder=Path(folder),
                emit=("object",),
                halide_target=halide_target,
                parameters=reference.parameters,
            )
            result = run_generator(program, request, _LIMITS)
        if written.is_file():
            read = json.loads(written.read_text(encoding="utf-8", errors="replace"))
            assert isinstance(read, dict)
            return read
        if isinstance(result, GeneratorFailure):
            raise GeneratorError(result.message)
        raise GeneratorError(
            f"The schedule of {reference.file} cannot be read: it does not use the SDK's libHalide.so.",
            next_step="Link the generator with libHalide.so, not with a static library; or give its source.",
        )
