from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.pipeline.facts import PipelineFacts
from halide_autotune.targets.pipeline.inspection import Inspected, inspect_pipeline
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

GENERATORS = Path(__file__).parent / "generators"
TARGET = "x86-64-linux-sse41-avx-avx2-fma-no_runtime"

OpenProgram = Callable[[str], GeneratorProgram]
Inspect = Callable[..., PipelineFacts]


@pytest.fixture(scope="module")
def open_program(halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings) -> Iterator[OpenProgram]:
    """Opens a generator of the folder by its file's name; each once."""
    with contextlib.ExitStack() as opened:
        programs: dict[str, GeneratorProgram] = {}

        def get(file_name: str) -> GeneratorProgram:
            if file_name not in programs:
                reference = parse_generator(str(GENERATORS / file_name))
                program = open_generator(reference, halide, cpp_compiler, settings.environment)
                programs[file_name] = opened.enter_context(contextlib.closing(program))
            return programs[file_name]

        yield get


@pytest.fixture(scope="module")
def inspect(open_program: OpenProgram, cpp_compiler: HostCppCompiler) -> Inspect:
    """The facts of a generator's pipeline, by its file's name, its parameters and the estimates that are given."""

    def facts_of(file_name: str, given: Mapping[str, str] | None = None, **parameters: str) -> PipelineFacts:
        program = open_program(file_name)
        facts = inspect_pipeline(Inspected(program, program.names[0], parameters, TARGET), given or {}, cpp_compiler)
        assert not isinstance(facts, GeneratorFailure), facts.message
        return facts

    return facts_of
