"""Halide's header is parsed once, and taken by what includes it first; without it all compiles as before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

pytestmark = pytest.mark.toolchain

SOURCES = Path(__file__).parents[4] / "src" / "halide_autotune"
PLUG_INS = sorted(
    {*SOURCES.glob("*/*/*_plugin.cpp"), *SOURCES.glob("*/*/*/*_plugin.cpp"), *SOURCES.glob("*/*/*_reader.cpp")}
)
PLUG_IN = """
#include "Halide.h"
int answer() {{ return Halide::Expr({}).type().bits(); }}
"""
# Tells of every header that is read, one that was parsed before with an exclamation mark.
TELLS = """#!/bin/sh
{compiler} -H "$@" 2> {log}.call
code=$?
tee -a {log} < {log}.call >&2
exit $code
"""
REFUSES = TELLS.replace("\n", '\ncase "$*" in *c++-header*) exit 1;; esac\n', 1)
Make = Callable[[str], HostCppCompiler]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("precompiled")


@pytest.fixture(scope="module")
def make(halide: HalideInstall, settings: Settings, folder: Path) -> Make:
    """Makes a compiler that g++ is behind, with a cache of its own."""

    def made(script: str) -> HostCppCompiler:
        program = folder / "bin" / "g++"
        program.parent.mkdir(exist_ok=True)
        program.write_text(script.format(compiler=shutil.which("g++"), log=folder / "log"))
        program.chmod(0o755)
        environment = {**settings.environment, "PATH": f"{program.parent}:{settings.environment['PATH']}"}
        return HostCppCompiler(halide, ContentCache(folder / "cache"), environment)

    return made


@pytest.fixture(scope="module")
def compiler(make: Make) -> HostCppCompiler:
    return make(TELLS)


def plug_in(folder: Path, number: int) -> Path:
    path = folder / f"plug_in_{number}.cpp"
    path.write_text(PLUG_IN.format(number))
    return path


def headers_read(folder: Path) -> list[str]:
    """All that were read since this was last asked."""
    lines = (folder / "log").read_text().splitlines()
    (folder / "log").unlink()
    return lines


@pytest.mark.parametrize("source", PLUG_INS, ids=lambda path: path.stem)
def test_each_plug_in_takes_it(compiler: HostCppCompiler, folder: Path, source: Path) -> None:
    compiler.build_plugin(source)
    assert any(line.startswith("! ") and line.endswith("/Halide.h.gch") for line in headers_read(folder))


def test_there_are_plug_ins() -> None:
    assert len(PLUG_INS) == 9


def test_one_that_cannot_be_read_any_more_is_done_without(compiler: HostCppCompiler, folder: Path) -> None:
    compiler.build_plugin(plug_in(folder, 1))
    (parsed,) = (folder / "cache").glob("[0-9a-f][0-9a-f]/*.gch")
    with parsed.open("r+b") as file:
        file.truncate(parsed.stat().st_size // 2)
    headers_read(folder)
    compiler.build_plugin(plug_in(folder, 2))
    assert any(line.endswith("/Halide.h") for line in headers_read(folder))


def test_a_compiler_that_makes_none_compiles(make: Make, folder: Path) -> None:
    make(REFUSES).build_plugin(plug_in(folder, 4))
    lines = headers_read(folder)
    assert not any(line.startswith("! ") for line in lines)
    assert any(line.endswith("/Halide.h") for line in lines)
