"""Integer pipelines are compared exactly; float ones are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from autotune_loop.featurization import Featurization, read_featurization
from autotune_loop.output_tolerance import output_tolerance
from devices.measure_settings import Tolerance
from sdk.settings import Settings
from targets.artifacts import KernelRecipe, emit_featurization
from targets.generator_reference import parse_generator
from targets.halide_install import HalideInstall
from targets.named_autoschedulers import profile_autoscheduler
from targets.profile_loader import load_profile
from targets.python_generator_program import PythonGeneratorProgram
from targets.schedule_choice import ScheduleChoice


def test_the_tolerance_of_real_pipelines(
    halide: HalideInstall, settings: Settings, examples: Path, tmp_path: Path
) -> None:
    profile = load_profile("host", settings.profile_folder)
    search = ScheduleChoice("greedy", profile_autoscheduler(halide, profile, 1, {"beam_size": "1"}))
    found = {}
    for name in ("separable_filter", "matrix_product", "corner_detector"):
        program = PythonGeneratorProgram(parse_generator(str(examples / f"{name}.py")).file, settings.environment)
        recipe = KernelRecipe(program, name, name, {}, profile, search)
        found[name] = output_tolerance(read_featurization(emit_featurization(recipe, tmp_path / name)))
        program.close()
    assert found["separable_filter"] == Tolerance() and Tolerance().integer == 0
    assert found["matrix_product"] != Tolerance() and found["corner_detector"] != Tolerance()


def test_no_operation_at_all_is_exact() -> None:
    nothing = Featurization(np.zeros((1, 39), np.float32), np.zeros((1, 287), np.float32))
    assert output_tolerance(nothing) == Tolerance()
