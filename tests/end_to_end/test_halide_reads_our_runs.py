"""What a run leaves works with Halide's own tools and in Halide's own way."""

from __future__ import annotations

import re
from pathlib import Path

import sdk
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import profile_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import read_weights
from tests.end_to_end.conftest import SMALL
from tests.halide_tool import check_every_sample_was_read, run_halides_tool

LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)


def test_halides_tool_trains_on_the_samples_of_a_run(python_run: TuneResult, tmp_path: Path) -> None:
    samples = sorted((python_run.run_folder / "samples").rglob("*.sample"))
    done = run_halides_tool(Network.ADAMS2019, samples, python_run.weights, tmp_path, epochs=2)
    check_every_sample_was_read(done.stdout + done.stderr, len(samples))
    read_weights(tmp_path / "tool.weights")


def test_the_plug_in_searches_with_the_weights_of_a_run(
    python_run: TuneResult,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    examples: Path,
    tmp_path: Path,
) -> None:
    profile = load_profile("host", settings.profile_folder)

    def log_of(weights: Path) -> str:
        search = profile_autoscheduler(halide, profile, 1, {"beam_size": "1", "weights_path": str(weights)})
        request = GeneratorRequest(
            "separable_filter", "f", "f", tmp_path, ("schedule",), profile.halide_target, {}, search
        )
        outcome = program.run(request.arguments(), LIMITS)
        assert outcome.succeeded
        return outcome.log

    reference = parse_generator(str(examples / "separable_filter.py"))
    program = open_generator(reference, halide, cpp_compiler, settings.environment)
    try:
        warnings = re.compile(r"random|warning", re.IGNORECASE)
        assert not warnings.search(log_of(python_run.weights))
        # So that the message above is known to say something:
        assert warnings.search(log_of(tmp_path / "missing.weights"))
    finally:
        program.close()


def test_the_header_is_called_from_a_cpp_generator(
    python_run: TuneResult,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    examples: Path,
    tmp_path: Path,
) -> None:
    """As a user does it: include it, call it in schedule(); the code is that of `sdk build --schedule`."""
    assert python_run.best.header is not None
    (tmp_path / "shipped.schedule.h").write_bytes(python_run.best.header.read_bytes())
    source = (examples / "separable_filter.cpp").read_text()
    manual = source[source.index("        if (!using_autoscheduler()) {") : source.index("    }\n};")]
    schedule = "    void schedule() { apply_schedule_separable_filter(get_pipeline(), get_target()); }"
    called = source.replace(manual, "").replace("    }\n};", f"    }}\n\n{schedule}\n}};")
    path = tmp_path / "shipped.cpp"
    path.write_text(called.replace('#include "Halide.h"', '#include "Halide.h"\n#include "shipped.schedule.h"'))
    profile = load_profile("host", settings.profile_folder)
    program = open_generator(parse_generator(str(path)), halide, cpp_compiler, settings.environment)
    parameters = dict(item.split("=") for item in SMALL)
    request = GeneratorRequest(
        "separable_filter", "blur", "blur", tmp_path / "out", ("object",), profile.halide_target, parameters
    )
    made = run_generator(program, request, LIMITS)
    assert isinstance(made, GeneratedFiles), made
    built = sdk.build(
        sdk.GeneratorSpec(str(examples / "separable_filter.cpp"), tuple(SMALL), function_name="blur"),
        tmp_path / "built",
        schedule=str(python_run.best.header),
        settings=settings,
    )
    assert built.object.read_bytes() == made.files["object"].read_bytes()
