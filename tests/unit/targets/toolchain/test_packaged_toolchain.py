"""The compiler of a package: how it is called, what is refused, and that a real one builds what runs."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.sdk.testing import check_toolchain
from halide_autotune.targets.errors import ProfileError, ToolchainError, UsageError
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TOOLCHAINS, ToolchainChoice
from halide_autotune.targets.toolchain.c_toolchain import describe_toolchains, open_toolchain
from halide_autotune.targets.toolchain.packaged_toolchain import CompilerCommands, checked_toolchain
from tests.installed_package import install_package

GCC = shutil.which("gcc", path="/usr/bin:/bin")
needs_gcc = pytest.mark.skipif(GCC is None or platform.machine() != "x86_64", reason="gcc for x86-64 is not installed")
TRIPLE = "x86_64-linux-gnu"
CHOICE = ToolchainChoice("lab", TRIPLE)
MODULE = """
from sdk import CompilerCommands
def lab(choice):
    return CompilerCommands(c=("gcc", "-DLAB"), library="glibc, dynamic")
def broken(choice):
    raise OSError("no licence")
"""
PROFILE = 'extends = "x86-64"\n[toolchain]\nkind = "lab"\n'


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"lab": "lab_compilers:lab", "broken": "lab_compilers:broken"}
    install_package(tmp_path / "p", "lab-compilers", {TOOLCHAINS.group: names}, {"lab_compilers": MODULE}, monkeypatch)


def opened(tmp_path: Path, commands: object) -> Any:
    return checked_toolchain(commands, CHOICE, tmp_path)


@pytest.mark.toolchain
@needs_gcc
def test_a_profile_chooses_it_and_it_is_told(tmp_path: Path) -> None:
    file = tmp_path / "lab-x86.toml"
    file.write_text(PROFILE)
    profile = load_profile(str(file))
    toolchain = open_toolchain(profile, tmp_path, None)
    assert toolchain.describe() == describe_toolchains(profile, tmp_path, None)
    assert toolchain.describe().startswith("lab (gcc ") and toolchain.describe().endswith(", glibc, dynamic")
    assert "-DLAB" in toolchain.fingerprint()
    check_toolchain("lab", TRIPLE, run_with=())


def test_a_kind_that_nobody_has_is_refused_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PROFILE.replace('"lab"', '"lap"'))
    with pytest.raises(ProfileError, match="one of zig, android, broken, lab, not 'lap'; the nearest is 'lab'"):
        load_profile(str(tmp_path / "x.toml"))


def test_a_package_that_fails_is_one_sentence(tmp_path: Path) -> None:
    profile = load_profile("x86-64")
    broken = replace(profile, toolchain=ToolchainChoice("broken", TRIPLE))
    with pytest.raises(ToolchainError, match="The toolchain 'broken' .* cannot be made: OSError: no licence") as caught:
        open_toolchain(broken, tmp_path, None)
    assert caught.value.next_step.endswith("or choose another toolchain.kind in the profile.")
    gone = replace(profile, toolchain=ToolchainChoice("gone", TRIPLE))
    with pytest.raises(ToolchainError, match="There is no toolchain 'gone'"):
        open_toolchain(gone, tmp_path, None)


@pytest.mark.parametrize(
    ("commands", "fault"),
    [
        (None, "must make an sdk.CompilerCommands, and makes NoneType"),
        # The wrong type is the test.
        (CompilerCommands(c="gcc"), "CompilerCommands.c must be a tuple of texts"),  # type: ignore[arg-type]
        (CompilerCommands(c=()), "must name the C compiler"),
        # The wrong type is the test.
        (CompilerCommands(c=("gcc",), libraries=("-lm", 3)), "CompilerCommands.libraries must be a tuple"),  # type: ignore[arg-type]
        (CompilerCommands(c=("gcc\0",)), "CompilerCommands.c must be a tuple of texts"),
    ],
)
def test_what_is_no_command_is_refused(tmp_path: Path, commands: object, fault: str) -> None:
    with pytest.raises(ToolchainError, match=fault):
        opened(tmp_path, commands)


def test_a_compiler_that_is_not_there_and_one_without_cpp(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="needs no-such-gcc, which is no program here"):
        opened(tmp_path, CompilerCommands(c=("no-such-gcc",))).version()
    with pytest.raises(ToolchainError, match="C\\+\\+ sources of kernels are not compiled with a package's compiler"):
        opened(tmp_path, CompilerCommands(c=("gcc",))).compile_cpp(tmp_path / "x.cpp", tmp_path / "x.o", [])


def always_true(choice: ToolchainChoice) -> CompilerCommands:
    return CompilerCommands(c=("true",))


def without_libraries(choice: ToolchainChoice) -> CompilerCommands:
    return CompilerCommands(c=("gcc", "-nostdlib"), libraries=())


def permissive(choice: ToolchainChoice) -> CompilerCommands:
    return CompilerCommands(c=("gcc", "-Dundeclared=0"))


@pytest.mark.toolchain
@needs_gcc
@pytest.mark.parametrize(
    ("make", "promise"),
    [
        (always_true, "must compile and link for x86_64-linux-gnu; it does not"),
        (without_libraries, "must compile and link for x86_64-linux-gnu; it does not"),
        (permissive, "must refuse a program that is wrong"),
    ],
)
def test_the_check_says_what_is_not_kept(make: Callable[[ToolchainChoice], CompilerCommands], promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_toolchain(make, TRIPLE)


def test_a_toolchain_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="There is no toolchain 'nothing'"):
        check_toolchain("nothing", TRIPLE)
