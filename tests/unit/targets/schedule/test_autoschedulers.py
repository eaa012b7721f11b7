"""Which autoschedulers make references, and in which order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.schedule.apply import apply_header
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import GREEDY, reference_autoschedulers, resolve_schedule
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

OTHERS = ["Mullapudi2016", "Li2018"]
# It ends in the middle of its function.
CUT = (
    "inline void apply_schedule_f(::Halide::Pipeline pipeline, ::Halide::Target target) {\n    using ::Halide::Func;\n"
)


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


def test_a_name_may_ask_for_the_greedy_search(halide: HalideInstall) -> None:
    def chosen(text: str) -> dict[str, str]:
        choice = resolve_schedule(text, load_profile("x86-64"), 4, halide, lambda header: pytest.fail("a header"))
        assert choice.searches and choice.autoscheduler is not None
        return dict(choice.autoscheduler.parameters)

    assert chosen(f"adams2019{GREEDY}") == {**chosen("adams2019"), "beam_size": "1"}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("cut.json", '{"function": 1}', r"cut\.json: The schedule is not JSON as .*: '\w+' is missing"),
        ("cut.json", "{}{}", r"cut\.json: The schedule is not JSON as .*: Extra data: line 1"),
        (
            "cut.schedule.h",
            CUT,
            r"cut\.schedule\.h: The schedule header does not compile: \S+",
        ),
    ],
)
def test_a_damaged_file_is_named(
    name: str, text: str, expected: str, halide: HalideInstall, tmp_path: Path, cpp_compiler: HostCppCompiler
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(GeneratorError, match=expected):
        resolve_schedule(
            str(tmp_path / name),
            load_profile("x86-64"),
            4,
            halide,
            lambda header: apply_header(header, cpp_compiler, ContentCache(tmp_path / "cache")),
        )


@pytest.mark.parametrize("profile", ["x86-64", "hexagon-v66"])
def test_without_a_compiler_there_is_one_fewer(profile: str, halide: HalideInstall, tmp_path: Path) -> None:
    bare = HostCppCompiler(halide, ContentCache(tmp_path / "cache"), {"PATH": str(tmp_path)})
    found = reference_autoschedulers(halide, 4, load_profile(profile), bare)
    assert [request.name for request in found] == OTHERS
