"""The Hexagon profiles, and what the processor of their C library may be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.targets.errors import ProfileError
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain


@pytest.mark.parametrize("version", ["v65", "v66", "v68"])
def test_built_in(version: str, tmp_path: Path) -> None:
    profile = load_profile(f"hexagon-{version}")
    assert profile.halide_target == f"hexagon-32-noos-hvx-hvx_128-hvx_{version}"
    assert (profile.machine.parallelism, profile.machine.vector_bits) == (4, 1024)
    assert profile.emulator is not None and profile.emulator.arguments == ("-cpu", "v67")
    toolchain = open_toolchain(profile, tmp_path, None)
    assert "-mcpu=hexagonv67" in toolchain.fingerprint()
    shims = [path.name for path in toolchain.shim_sources]
    assert shims == [
        "musl_shims.c",
        "shims.c",
        "memory_shims.c",
        "linux_shims.c",
    ]


def test_without_a_processor(tmp_path: Path) -> None:
    assert load_profile("arm64").toolchain.cpu is None
    assert "-mcpu" not in open_toolchain(load_profile("arm64"), tmp_path, None).fingerprint()


@pytest.mark.parametrize("cpu", ['"-v67"', '"hexagon v67"', "67", '"x;rm"'])
def test_a_processor_that_cannot_be_one(cpu: str, tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text(f'extends = "hexagon-v66"\n[toolchain]\ncpu = {cpu}\n')
    with pytest.raises(ProfileError, match=r"key 'toolchain.cpu' must be"):
        load_profile(str(path))
