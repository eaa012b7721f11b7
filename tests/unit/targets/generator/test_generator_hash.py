"""What a generator's hash tells apart."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.targets.generator.program import generator_sha256
from halide_autotune.targets.generator.reference import GeneratorKind, GeneratorReference
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.generator_projects import cpp_project, python_project


def test_the_modules_of_a_python_generator_count_but_not_what_is_shipped_for_it(
    tmp_path: Path, halide: HalideInstall
) -> None:
    compiler = HostCppCompiler(halide, ContentCache(tmp_path / "cache"), dict(os.environ))
    generator, helper = tmp_path / "blur.py", tmp_path / "stages" / "taps.py"
    generator.write_text("from stages import taps\nfrom schedules import blur_schedule\n")
    helper.parent.mkdir()
    helper.write_text("TAPS = 3\n")
    reference = GeneratorReference(generator, GeneratorKind.PYTHON)
    before = generator_sha256(reference, compiler)
    (tmp_path / "schedules").mkdir()
    (tmp_path / "schedules" / "blur_schedule.py").write_text("def apply_schedule(pipeline, target): ...\n")
    (tmp_path / "other.py").write_text("# nobody imports it\n")
    assert generator_sha256(reference, compiler) == before
    helper.write_text("TAPS = 5\n")
    assert generator_sha256(reference, compiler) != before


@pytest.mark.toolchain
@pytest.mark.parametrize("project", [cpp_project, python_project])
def test_other_data_is_another_generator(
    project: Callable[[Path], GeneratorReference], tmp_path: Path, halide: HalideInstall
) -> None:
    reference = project(tmp_path / "home")
    compiler = HostCppCompiler(halide, ContentCache(tmp_path / "cache"), dict(os.environ))
    before = generator_sha256(reference, compiler)
    (tmp_path / "home" / "data" / "gain.txt").write_text("4\n")
    assert generator_sha256(reference, compiler) != before
