"""A schedule that went through data and back gives the code of the autoscheduler that made it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.schedule_round_trip import TARGETS, Case
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.print_loops import print_loops
from halide_autotune.autotune_loop.schedule.print_python import print_python
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.object_code import loaded_content
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.generator.python_program import PythonGeneratorProgram
from halide_autotune.targets.generator.run import AutoschedulerRequest, GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.schedule.plugins import replay_autoscheduler, schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

SMALL = {"input_channels": "16", "output_channels": "16", "width": "24", "height": "16"}
RANDOM = {"beam_size": "1", "random_dropout": "6", "random_dropout_seed": "1"}
AUTOSCHEDULERS = [
    pytest.param("host", "Adams2019", {"parallelism": "8", **RANDOM}, id="adams2019"),
    pytest.param("arm64", "Mullapudi2016", {"parallelism": "8"}, id="mullapudi2016"),
    pytest.param("host", "Li2018", {"parallelism": "8"}, id="li2018"),
    pytest.param("cuda", "Anderson2021", {"parallelism": "80", **RANDOM}, id="anderson2021"),
]
# The example's pipeline, and at its end the schedule that was printed.
APPLIED = """\
import halide as hl
import tuned
from convolution_layer import ConvolutionLayer


@hl.generator(name="applied")
class Applied(ConvolutionLayer):
    def using_autoscheduler(self):
        return True

    def generate(self):
        super().generate()
        pipeline = hl.Pipeline([self.output])
        tuned.apply_schedule(pipeline, self.target())
        pipeline.print_loop_nest()
"""


@pytest.fixture(scope="module")
def even_names(cpp_compiler: HostCppCompiler) -> Path:
    return cpp_compiler.build_plugin(Path(__file__).parents[4] / "benchmarks" / "even_names.cpp")


@pytest.fixture(scope="module")
def program(examples: Path, settings: Settings) -> Iterator[GeneratorProgram]:
    with contextlib.closing(PythonGeneratorProgram(examples / "convolution_layer.py", settings.environment)) as opened:
        yield opened


def run(case: Case, folder: Path, autoscheduler: AutoschedulerRequest) -> tuple[bytes, Schedule]:
    result = case.run(folder, autoscheduler, "object", "schedule")
    assert isinstance(result, GeneratedFiles), result
    text = result.files["schedule"].read_text()
    schedule = parse_schedule(text) if autoscheduler.name == case.autoscheduler.name else Schedule("f", (), (), ())
    return result.files["object"].read_bytes(), schedule


@pytest.mark.slow
def test_every_header_compiles(cpp_compiler: HostCppCompiler, tmp_path: Path) -> None:
    includes = []
    for number, emitted in enumerate(sorted((Path(__file__).parent / "headers").glob("*.schedule.h"))):
        name = f"printed_{number}"
        (tmp_path / f"{name}.h").write_text(print_header(parse_schedule(emitted.read_text()), name))
        includes.append(
            f'#include "{name}.h"\nvoid (*use_{number})(Halide::Pipeline, Halide::Target) = apply_schedule_{name};\n'
        )
    source = tmp_path / "all.cpp"
    source.write_text("".join(includes))
    assert len(includes) >= 40
    assert cpp_compiler.build_plugin(source).stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize(("target", "name", "parameters"), AUTOSCHEDULERS)
def test_as_a_header(
    target: str,
    name: str,
    parameters: dict[str, str],
    program: GeneratorProgram,
    even_names: Path,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    tmp_path: Path,
) -> None:
    search = AutoschedulerRequest(name, (halide.plugin_path(name),), parameters)
    case = Case(program, "convolution_layer", SMALL, target, search, even_names)
    found, schedule = run(case, tmp_path / "search", search)
    header = print_header(schedule, "shipped")
    applied, _ = run(case, tmp_path / "applied", schedule_autoscheduler(header, cpp_compiler))
    if name == "Li2018":  # its names of loops, which are in symbols, are of one process
        assert loaded_content(applied) == loaded_content(found)
    else:
        assert applied == found
    other = re.sub(r"\.vectorize\(\w+\)|\.gpu_threads\(\w+\)", "", header, count=1)
    changed, _ = run(case, tmp_path / "changed", schedule_autoscheduler(other, cpp_compiler))
    assert loaded_content(changed) != loaded_content(found)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "name", "parameters"), AUTOSCHEDULERS)
def test_as_data(
    target: str,
    name: str,
    parameters: dict[str, str],
    program: GeneratorProgram,
    even_names: Path,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    tmp_path: Path,
) -> None:
    """Applied by the plug-in that compiles nothing, to the last byte what the compiled header gives."""
    search = AutoschedulerRequest(name, (halide.plugin_path(name),), parameters)
    case = Case(program, "convolution_layer", SMALL, target, search, even_names)
    _, schedule = run(case, tmp_path / "search", search)
    applied, _ = run(case, tmp_path / "header", schedule_autoscheduler(print_header(schedule, "f"), cpp_compiler))
    data = tmp_path / "schedule.json"
    data.write_text(print_json(schedule))
    replayed, _ = run(case, tmp_path / "data", replay_autoscheduler(data, cpp_compiler))
    assert replayed == applied


@pytest.mark.slow
@pytest.mark.parametrize(("target", "name", "parameters"), AUTOSCHEDULERS)
def test_as_a_python_module(
    target: str,
    name: str,
    parameters: dict[str, str],
    program: GeneratorProgram,
    halide: HalideInstall,
    settings: Settings,
    cpp_compiler: HostCppCompiler,
    examples: Path,
    tmp_path: Path,
) -> None:
    """The header's code is the yardstick, so that both come without a search before them."""
    search = AutoschedulerRequest(name, (halide.plugin_path(name),), parameters)
    limits = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
    request = GeneratorRequest(
        "convolution_layer", "f", "f", tmp_path / "search", ("schedule",), TARGETS[target], SMALL, search
    )
    searched = run_generator(program, request, limits)
    assert isinstance(searched, GeneratedFiles), searched
    schedule = parse_schedule(searched.files["schedule"].read_text())
    plugin = schedule_autoscheduler(print_header(schedule, "shipped"), cpp_compiler)
    request = replace(request, emit=("object",), output_folder=tmp_path / "header", autoscheduler=plugin)
    by_header = run_generator(program, request, limits)
    assert isinstance(by_header, GeneratedFiles), by_header

    (tmp_path / "convolution_layer.py").write_text((examples / "convolution_layer.py").read_text())
    (tmp_path / "tuned.py").write_text(print_python(schedule))
    (tmp_path / "applied.py").write_text(APPLIED)
    with contextlib.closing(PythonGeneratorProgram(tmp_path / "applied.py", settings.environment)) as applied:
        request = replace(request, generator_name="applied", output_folder=tmp_path / "python", autoscheduler=None)
        by_module = run_generator(applied, request, limits)
        assert isinstance(by_module, GeneratedFiles), by_module
        log = applied.run(replace(request, output_folder=tmp_path / "again").arguments(), limits).log
    assert by_module.files["object"].read_bytes() == by_header.files["object"].read_bytes()
    if name == "Adams2019":  # the others name less of the loops
        # Halide leaves out loops that it knows to run once; all others stand in the same order.
        ours = iter(loops_of(print_loops(schedule)))
        theirs = loops_of(log)
        assert len(theirs) > 10 and all(loop in ours for loop in theirs)


def loops_of(text: str) -> list[str]:
    """What is produced, and every loop's kind and name, in their order.

    Halide names a loop after its splits ("c.ci") and a reduction's loops after their domain alone ("r" for "r_x").
    """
    found = re.findall(r"^\s*(produce|for|parallel|vectorized|unrolled) ([\w.]+)", text, re.MULTILINE)
    return [f"{kind} {re.sub('^r_[xyz]$', 'r', name.split('.')[-1])}" for kind, name in found]
