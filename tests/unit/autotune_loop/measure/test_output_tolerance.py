"""Integer pipelines are compared exactly; float ones are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from halide_autotune.autotune_loop.measure.output_tolerance import output_tolerance, pipeline_tolerance, tolerance_of
from halide_autotune.autotune_loop.store.featurization import Featurization
from halide_autotune.devices.timing.measure_settings import Tolerance
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.artifacts import KernelRecipe
from halide_autotune.targets.generator.python_program import PythonGeneratorProgram
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler


def test_the_tolerance_of_real_pipelines(cpp_compiler: HostCppCompiler, settings: Settings, examples: Path) -> None:
    profile = load_profile("host", settings.profile_folder)
    found = {}
    for name in ("separable_filter", "matrix_product", "corner_detector"):
        program = PythonGeneratorProgram(parse_generator(str(examples / f"{name}.py")).file, settings.environment)
        recipe = KernelRecipe(program, name, name, {}, profile, ScheduleChoice("own", None))
        found[name] = pipeline_tolerance(recipe, cpp_compiler)
        program.close()
    assert found["separable_filter"] == Tolerance() and Tolerance().integer == 0
    assert found["matrix_product"] == found["corner_detector"] == tolerance_of(computes_with_floats=True)


def test_no_more_than_rounding_explains_is_let_pass() -> None:
    """One wrong row of a picture of 900, or one wrong tile of a large one, is a wrong output."""
    tolerance = tolerance_of(computes_with_floats=True)
    wrong_row, wrong_tile = 1 / 900, 32 * 32 / (3840 * 2160)
    assert tolerance.mismatch_share < wrong_row and tolerance.far_share < wrong_tile
    assert tolerance.integer <= 1 and tolerance.float_relative <= 1e-3 and tolerance.far_scale <= 0.05
    assert tolerance_of(computes_with_floats=False) == Tolerance(), "integers are exact"
    assert (Tolerance().integer, Tolerance().mismatch_share, Tolerance().far_share) == (0, 0.0, 0.0)


def test_no_operation_at_all_is_exact() -> None:
    nothing = Featurization(np.zeros((1, 39), np.float32), np.zeros((1, 287), np.float32))
    assert output_tolerance(nothing) == Tolerance()
