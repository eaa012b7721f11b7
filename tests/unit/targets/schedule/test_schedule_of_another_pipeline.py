"""A schedule header names Funcs by their number: applied to a smaller pipeline it says what is wrong."""

from __future__ import annotations

import contextlib
from pathlib import Path

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.python_program import PythonGeneratorProgram
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorRequest, run_generator
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_HEADER = """\
#include "Halide.h"
inline void apply_schedule_large(::Halide::Pipeline pipeline, ::Halide::Target target) {
    ::Halide::Func f = pipeline.get_func(31);
    f.compute_root();
}
"""


def test_it_is_told_apart_from_a_broken_generator(
    examples: Path, settings: Settings, cpp_compiler: HostCppCompiler, tmp_path: Path
) -> None:
    autoscheduler = schedule_autoscheduler(_HEADER, cpp_compiler)
    program = PythonGeneratorProgram(examples / "separable_filter.py", settings.environment)
    with contextlib.closing(program):
        name = program.names[0]
        request = GeneratorRequest(name, "f", "f", tmp_path, ("object",), "x86-64-linux", {}, autoscheduler)
        result = run_generator(program, request, ProcessLimits(time_s=240.0, memory_bytes=2 * 2**30))
    assert isinstance(result, GeneratorFailure)
    assert "another pipeline" in result.message and f"generator {name} " in result.message
    assert "Index value passed is 31" in result.message
