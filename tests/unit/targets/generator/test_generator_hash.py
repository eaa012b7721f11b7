"""What a generator's hash tells apart."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.targets.generator.program import generator_sha256
from halide_autotune.targets.generator.reference import GeneratorReference
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.generator_projects import cpp_project, python_project


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
