"""Which autoschedulers make references, and in which order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import reference_autoschedulers
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

OTHERS = ["Mullapudi2016", "Li2018"]


@pytest.mark.parametrize(
    ("profile", "names"),
    [
        ("x86-64", [*OTHERS, "AllAtRoot"]),
        ("cuda-sm80", ["Li2018", "Mullapudi2016", "AllAtRoot"]),
        ("hexagon-v65", ["AllAtRoot", *OTHERS]),
        ("hexagon-v68", ["AllAtRoot", *OTHERS]),
        ("riscv64-rvv", ["AllAtRoot", *OTHERS]),
    ],
)
def test_plain_loops_are_the_last_resort_but_where_vectors_are_in_doubt(
    profile: str, names: list[str], halide: HalideInstall, cpp_compiler: HostCppCompiler
) -> None:
    found = reference_autoschedulers(halide, 4, load_profile(profile), cpp_compiler)
    assert [request.name for request in found] == names


def test_offloaded_vectors_are_hvxs_too(halide: HalideInstall, cpp_compiler: HostCppCompiler) -> None:
    phone = load_profile("arm64-android")
    offloading = replace(phone, halide_target=f"{phone.halide_target}-hvx-hvx_128-hvx_v66")
    assert not phone.has_doubtful_vectors and offloading.has_doubtful_vectors and not offloading.is_hexagon
    assert next(iter(reference_autoschedulers(halide, 4, offloading, cpp_compiler))).name == "AllAtRoot"


@pytest.mark.parametrize("profile", ["x86-64", "hexagon-v66"])
def test_without_a_compiler_there_is_one_fewer(profile: str, halide: HalideInstall, tmp_path: Path) -> None:
    bare = HostCppCompiler(halide, ContentCache(tmp_path / "cache"), {"PATH": str(tmp_path)})
    found = reference_autoschedulers(halide, 4, load_profile(profile), bare)
    assert [request.name for request in found] == OTHERS
