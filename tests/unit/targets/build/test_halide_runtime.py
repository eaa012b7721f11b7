from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from halide_autotune.targets.build.executable import build_runtime_object
from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.content_cache import ContentCache
from tests.unit.targets.conftest import Workshop

# The machine number of an ELF header.
ELF_MACHINES = {"x86-64-linux": 62, "arm-64-android": 183, "hexagon-32-noos-hvx_128-hvx_v66": 164}


@pytest.mark.parametrize("target", ELF_MACHINES)
def test_makes_an_object_for_the_target(workshop: Workshop, target: str) -> None:
    content = build_runtime_object(target, workshop.cache, workshop.halide).read_bytes()
    assert content[:4] == b"\x7fELF"
    assert int.from_bytes(content[18:20], "little") == ELF_MACHINES[target]
    assert b"halide_error_bad_type" in content


def test_is_cached_whatever_the_kernels_leave_out(workshop: Workshop) -> None:
    plain = build_runtime_object("x86-64-linux", workshop.cache, workshop.halide)
    changed = plain.stat().st_mtime_ns
    assert build_runtime_object("x86-64-linux-no_runtime", workshop.cache, workshop.halide) == plain
    assert build_runtime_object("x86-64-linux-strict_float", workshop.cache, workshop.halide) == plain
    assert plain.stat().st_mtime_ns == changed


def test_a_wrong_target_gets_halides_words(workshop: Workshop) -> None:
    with pytest.raises(ToolchainError, match=r"target 'arm-64-linus'.*Did not understand Halide target"):
        build_runtime_object("arm-64-linus", workshop.cache, workshop.halide)


def test_a_missing_program_says_what_to_do(workshop: Workshop, tmp_path: Path) -> None:
    halide = dataclasses.replace(workshop.halide, root=tmp_path)
    (tmp_path / "lib64").mkdir()
    halide.library.write_bytes(b"library")
    with pytest.raises(ToolchainError, match=r"gengen cannot be run.*pip install --force-reinstall halide"):
        build_runtime_object("x86-64-linux", ContentCache(tmp_path / "cache"), halide)
