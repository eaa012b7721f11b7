"""A shipped header gives the very code that the search gave, whatever language the generator is in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import (
    AutoschedulerRequest,
    GeneratedFiles,
    GeneratorFailure,
    GeneratorRequest,
    run_generator,
)
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import profile_autoscheduler
from halide_autotune.targets.schedule.header import portable_schedule
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
SMALL = {"width": "256", "height": "128"}


@dataclass(frozen=True)
class Bench:
    """Compiles one generator."""

    program: GeneratorProgram
    target: str

    def run(
        self, folder: Path, autoscheduler: AutoschedulerRequest, *emit: str, **parameters: str
    ) -> GeneratedFiles | GeneratorFailure:
        request = GeneratorRequest(
            "separable_filter", "blur", "blur", folder, emit, self.target, {**SMALL, **parameters}, autoscheduler
        )
        return run_generator(self.program, request, LIMITS)


@pytest.fixture(scope="module", params=["py", "cpp"])
def bench(
    request: pytest.FixtureRequest,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    examples: Path,
) -> Iterator[Bench]:
    reference = parse_generator(str(examples / f"separable_filter.{request.param}"))
    program = open_generator(reference, halide, cpp_compiler, settings.environment)
    yield Bench(program, load_profile("host", settings.profile_folder).halide_target + "-no_runtime")
    program.close()


@pytest.fixture
def random_search(halide: HalideInstall, settings: Settings) -> AutoschedulerRequest:
    profile = load_profile("host", settings.profile_folder)
    parameters = {"beam_size": "1", "random_dropout": "5", "random_dropout_seed": "7"}
    return profile_autoscheduler(halide, profile, 2, parameters)


def test_the_header_gives_the_code_of_the_search(
    bench: Bench, random_search: AutoschedulerRequest, cpp_compiler: HostCppCompiler, tmp_path: Path
) -> None:
    searched = bench.run(tmp_path / "searched", random_search, "object", "schedule")
    assert isinstance(searched, GeneratedFiles), searched
    header = portable_schedule(searched.files["schedule"].read_text(), "shipped_blur")
    applied = bench.run(tmp_path / "applied", schedule_autoscheduler(header, cpp_compiler), "object")
    assert isinstance(applied, GeneratedFiles), applied
    assert applied.files["object"].read_bytes() == searched.files["object"].read_bytes()


def test_a_header_for_another_pipeline_is_a_failure_with_its_reason(
    bench: Bench, cpp_compiler: HostCppCompiler, tmp_path: Path
) -> None:
    header = (
        '#include "Halide.h"\n'
        "inline void apply_schedule_other(Halide::Pipeline pipeline, Halide::Target target) {\n"
        "    pipeline.get_func(77).compute_root();\n"
        "}\n"
    )
    result = bench.run(tmp_path / "out", schedule_autoscheduler(header, cpp_compiler), "object")
    assert isinstance(result, GeneratorFailure)
    assert not list((tmp_path / "out").iterdir())


def test_a_header_that_does_not_compile_shows_the_compilers_error(cpp_compiler: HostCppCompiler) -> None:
    header = "inline void apply_schedule_x(Halide::Pipeline p, Halide::Target t) { nonsense; }\n"
    with pytest.raises(GeneratorError, match="nonsense"):
        schedule_autoscheduler('#include "Halide.h"\n' + header, cpp_compiler)
