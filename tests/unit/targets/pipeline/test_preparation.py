"""A generator that schedules itself is searched as if it did not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from halide_autotune.targets.generator.run import GeneratedFiles, GeneratorFailure, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import li2018, mullapudi2016, profile_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.unit.targets.pipeline.conftest import TARGET, Inspect, OpenProgram

pytestmark = pytest.mark.toolchain

LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
# What can be taken off without a trace; `rfactor` leaves its intermediate Func in the pipeline.
WAYS = ("loops", "storage", "wrappers", "clones", "fused", "cases", "tasks")


@pytest.fixture(scope="module")
def preparation(cpp_compiler: HostCppCompiler) -> PipelinePreparation:
    return PipelinePreparation(build_preparation_plugin(cpp_compiler))


@pytest.mark.parametrize("autoscheduler", ["adams2019", "mullapudi2016", "li2018"])
@pytest.mark.parametrize("file_name", ["scheduled.cpp", "scheduled.py"])
def test_the_search_finds_what_it_finds_without_the_schedule(
    file_name: str,
    autoscheduler: str,
    open_program: OpenProgram,
    preparation: PipelinePreparation,
    halide: HalideInstall,
    tmp_path: Path,
) -> None:
    profile = load_profile("x86-64", tmp_path)
    request = {
        "adams2019": profile_autoscheduler(halide, profile, 2, {"beam_size": "1"}),
        "mullapudi2016": mullapudi2016(halide, 2, profile.machine),
        "li2018": li2018(halide, 2),
    }[autoscheduler]
    program = open_program(file_name)

    # Li2018 numbers its variables after all others of the process, so its code has other names in it.
    kind = "schedule" if autoscheduler == "li2018" else "object"

    def found(way: str) -> bytes:
        files = GeneratorRequest(
            program.names[0], "k", "k", tmp_path / way, (kind,), TARGET, {"way": way}, preparation.before(request)
        )
        result = run_generator(program, files, LIMITS)
        assert isinstance(result, GeneratedFiles), (way, result.message)
        return re.sub(rb"\bv\d+\b", b"v", result.files[kind].read_bytes())

    plain = found("none")
    ways = WAYS if file_name.endswith(".cpp") else ("loops",)
    assert {way: found(way) == plain for way in ways} == dict.fromkeys(ways, True)


def test_the_funcs_of_rfactor_are_searched_like_others(
    open_program: OpenProgram, preparation: PipelinePreparation, halide: HalideInstall, tmp_path: Path
) -> None:
    request = preparation.before(profile_autoscheduler(halide, load_profile("x86-64", tmp_path), 2, {"beam_size": "1"}))
    program = open_program("scheduled.cpp")
    files = GeneratorRequest(
        "scheduled", "k", "k", tmp_path, ("object", "schedule"), TARGET, {"way": "factored"}, request
    )
    result = run_generator(program, files, LIMITS)
    assert isinstance(result, GeneratedFiles), result.message
    assert "total_intm" in result.files["schedule"].read_text()


def test_without_preparation_it_cannot_be_searched(
    open_program: OpenProgram, halide: HalideInstall, tmp_path: Path
) -> None:
    request = profile_autoscheduler(halide, load_profile("x86-64", tmp_path), 2, {"beam_size": "1"})
    files = GeneratorRequest("scheduled", "k", "k", tmp_path, ("object",), TARGET, {"way": "loops"}, request)
    result = run_generator(open_program("scheduled.cpp"), files, LIMITS)
    assert isinstance(result, GeneratorFailure)
    assert "schedules" in result.message and "by hand" in result.message


@pytest.mark.parametrize("gain", ["1.5", "1e+10"])
def test_estimates_are_given_where_the_generator_has_none(
    inspect: Inspect,
    open_program: OpenProgram,
    cpp_compiler: HostCppCompiler,
    halide: HalideInstall,
    tmp_path: Path,
    gain: str,
) -> None:
    facts = inspect("sizes.cpp", {"output": "640x480", "gain": gain})
    preparation = PipelinePreparation(build_preparation_plugin(cpp_compiler), facts.estimates())
    request = profile_autoscheduler(halide, load_profile("x86-64", tmp_path), 2, {"beam_size": "1"})
    emit = ("object", "featurization")
    files = GeneratorRequest("sizes", "k", "k", tmp_path, emit, TARGET, {}, preparation.before(request))
    result = run_generator(open_program("sizes.cpp"), files, LIMITS)
    assert isinstance(result, GeneratedFiles), result.message


@pytest.mark.parametrize(
    ("way", "scheduled"),
    [
        ("none", set()),
        ("loops", {"output", "total", "best"}),
        ("storage", {"blurred", "total"}),
        ("wrappers", {"blurred", "input_im"}),
        ("clones", {"blurred"}),
        ("cases", {"output"}),
        ("tasks", {"blurred", "total"}),
    ],
)
def test_the_scheduled_funcs_are_named(inspect: Inspect, way: str, scheduled: set[str]) -> None:
    assert set(inspect("scheduled.cpp", way=way).scheduled) == scheduled
