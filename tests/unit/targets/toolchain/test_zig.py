from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.zig import ZigToolchain
from tests.unit.targets.conftest import X86, Workshop


@pytest.fixture
def toolchain(workshop: Workshop) -> ZigToolchain:
    return workshop.toolchain(X86)


def test_compiles_and_links(toolchain: ZigToolchain, tmp_path: Path) -> None:
    source, compiled, program = tmp_path / "answer.c", tmp_path / "answer.o", tmp_path / "answer"
    (tmp_path / "answer.h").write_text("#define ANSWER 42\n")
    # The shift is undefined: a sanitizer would end the program.
    source.write_text(
        '#include "answer.h"\nint main(int argc, char **argv) {\n'
        "    (void)argv;\n    volatile int by = 33 + argc;\n    volatile int none = 1 << by;\n"
        "    (void)none;\n    return ANSWER;\n}\n"
    )
    toolchain.compile_c(source, compiled, [tmp_path], ["-Wall", "-Wextra", "-Werror"])
    toolchain.link([compiled], program)
    assert os.access(program, os.X_OK)
    assert subprocess.run([str(program)], check=False).returncode == 42


def test_keeps_to_its_cache_folder(workshop: Workshop, tmp_path: Path) -> None:
    folder = tmp_path / "zig"
    toolchain = ZigToolchain("x86_64-linux-musl", folder)
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    toolchain.compile_c(source, tmp_path / "empty.o", [])
    assert folder.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.c", "empty.o", "zig"]


def test_paths_may_be_relative_and_nothing_of_the_working_directory_is_run(
    toolchain: ZigToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.c").write_text('#include "a.h"\nint main(void) { return A; }\n')
    (tmp_path / "a.h").write_text("#define A 0\n")
    (tmp_path / "ziglang.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    toolchain.compile_c(Path("a.c"), Path("a.o"), [Path()])
    toolchain.link([Path("a.o")], Path("a"))
    assert os.access(tmp_path / "a", os.X_OK)


def test_it_is_prepared_once(toolchain: ZigToolchain, workshop: Workshop) -> None:
    toolchain.prepare()
    assert toolchain.is_prepared
    again = workshop.toolchain(X86)
    assert again.is_prepared


@pytest.mark.toolchain
def test_a_stopped_preparation_is_no_error_and_not_done(tmp_path: Path) -> None:
    stop = StopSignal()
    stop.set()
    toolchain = ZigToolchain("aarch64-linux-musl", tmp_path / "zig")
    assert not toolchain.is_prepared
    toolchain.prepare(stop)
    assert not toolchain.is_prepared


@pytest.mark.toolchain
def test_a_library_that_cannot_be_built_is_an_error(tmp_path: Path) -> None:
    toolchain = ZigToolchain("aarch64-linux-musl", tmp_path, extra_flags=("-no-such-flag-of-a-compiler",))
    with pytest.raises(ToolchainError, match="The C library for aarch64-linux-musl cannot be built"):
        toolchain.prepare()
    assert not toolchain.is_prepared
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolchainError, match="cannot be built"):
        ZigToolchain("aarch64-linux-musl", tmp_path / "file").prepare()


def test_a_compiler_error_is_passed_on(toolchain: ZigToolchain, tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int main(void) { return nothing_known; }\n")
    with pytest.raises(ToolchainError, match=r"(?s)broken\.c does not compile for x86_64.*nothing_known"):
        toolchain.compile_c(source, tmp_path / "broken.o", [])
    assert not (tmp_path / "broken.o").exists()


def test_a_linker_error_is_passed_on(toolchain: ZigToolchain, tmp_path: Path) -> None:
    source, compiled = tmp_path / "open.c", tmp_path / "open.o"
    source.write_text("int elsewhere(void);\nint main(void) { return elsewhere(); }\n")
    toolchain.compile_c(source, compiled, [])
    with pytest.raises(ToolchainError, match=r"(?s)program does not link.*undefined symbol: elsewhere"):
        toolchain.link([compiled], tmp_path / "program")


def test_the_fingerprint_tells_toolchains_apart(tmp_path: Path) -> None:
    plain = ZigToolchain("x86_64-linux-musl", tmp_path)
    other = ZigToolchain("aarch64-linux-musl", tmp_path)
    tuned = ZigToolchain("x86_64-linux-musl", tmp_path, extra_flags=("-mcpu=haswell",))
    assert len({plain.fingerprint(), other.fingerprint(), tuned.fingerprint()}) == 3
    assert plain.version() in plain.fingerprint()


@pytest.mark.parametrize("python", ["/usr/bin/false", "/nowhere/python"])
def test_a_missing_toolchain_says_how_to_install(tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", python)
    toolchain = ZigToolchain("x86_64-linux-musl", tmp_path)
    with pytest.raises(ToolchainError, match=f"Install it with: {python} -m pip install ziglang"):
        toolchain.compile_c(tmp_path / "a.c", tmp_path / "a.o", [])
